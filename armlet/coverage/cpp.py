"""What is declared in C++ sources: functions, enumerations, structures. Parsed with tree-sitter."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from armlet.registrations import switched_on


class Unlowerable(ValueError):
    """A construct that nobody taught us: the message starts with file:line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function's definition. ``name`` is qualified by its class, where it has one."""

    name: str
    file: str
    parameters: tuple[tuple[str, bool, str], ...]
    """Name, whether the callee may write to the caller's variable, and type."""
    body: Any
    """The tree's ``compound_statement``."""

    @property
    def text(self) -> str:
        return str(self.body.parent.text.decode())


@dataclass(slots=True, kw_only=True)
class Sources:
    """What was found in all files."""

    functions: dict[str, list[Function]] = field(default_factory=dict)
    """By name without class."""
    defaults: dict[str, list[Any]] = field(default_factory=dict)
    """Function -> trees of its trailing parameters' default values, and the file that they are of."""
    enums: dict[str, str] = field(default_factory=dict)
    """Enumerator, plain and qualified -> its qualified name."""
    structs: set[str] = field(default_factory=set)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    file_of_default: dict[str, str] = field(default_factory=dict)

    def method(self, qualified: str) -> Function | None:
        """``Class::name`` in the class or the nearest one it derives from."""
        owner, _, name = qualified.rpartition("::")
        for one in self.functions.get(name, []):
            if one.name == qualified:
                return one
        for base in self.bases.get(owner, ()):
            found = self.method(f"{base}::{name}")
            if found:
                return found
        return None

    def function(self, name: str, file: str) -> Function | None:
        """The function that a call of ``name`` in ``file`` means.

        Raises:
            Unlowerable: there are several, and none of them in that file.
        """
        if "::" in name:
            return self.method(name) or self.function(name.rpartition("::")[2], file)
        found = [one for one in self.functions.get(name, []) if "::" not in one.name]
        here = [one for one in found if one.file == file]
        if len(here) == 1 or len(found) == 1:
            return (here or found)[0]
        if found:
            raise Unlowerable(f"{file}: {name} is defined in {', '.join(one.file for one in found)}")
        return None


def parse(texts: Mapping[str, str], *, defined: Collection[str]) -> Sources:
    """What the files (name -> text) declare where ``defined`` are the preprocessor's symbols."""
    parser = _parser()
    sources = Sources()
    for file, text in texts.items():
        # Whatever is conditional must have been decided before: conditions stand in the middle of expressions.
        root = parser.parse(switched_on(text, defined).encode()).root_node
        for node in _declared(root):
            _take(sources, node, file)
    return sources


def text_of(node: Any) -> str:
    return str(node.text.decode())


def where(file: str, node: Any) -> str:
    return f"{file}:{node.start_point[0] + 1}"


def _parser() -> Any:
    library = importlib.import_module("tree_sitter")
    grammar = importlib.import_module("tree_sitter_cpp")
    return library.Parser(library.Language(grammar.language()))


_TRANSPARENT = frozenset({"namespace_definition", "declaration_list", "linkage_specification", "template_declaration"})


def _declared(node: Any) -> Iterator[Any]:
    for child in node.named_children:
        if child.type in _TRANSPARENT:
            yield from _declared(child)
        else:
            yield child


def _take(sources: Sources, node: Any, file: str) -> None:
    if node.type == "function_definition":
        _take_function(sources, node, file)
    elif node.type == "declaration":
        _take_defaults(sources, node, file)
    elif node.type == "enum_specifier":
        _take_enum(sources, node)
    elif node.type in ("class_specifier", "struct_specifier"):
        _take_class(sources, node)


def _take_function(sources: Sources, node: Any, file: str) -> None:
    declarator, body = _function_declarator(node), node.child_by_field_name("body")
    if declarator is None or body is None or body.type != "compound_statement":
        return
    name = text_of(declarator.child_by_field_name("declarator"))
    parameters = tuple(_parameter(one) for one in _parameters(declarator))
    made = Function(name=name, file=file, parameters=parameters, body=body)
    sources.functions.setdefault(name.rpartition("::")[2], []).append(made)


def _take_defaults(sources: Sources, node: Any, file: str) -> None:
    declarator = _function_declarator(node)
    if declarator is None:
        return
    values = [one.child_by_field_name("default_value") for one in _parameters(declarator)]
    given = [value for value in values if value is not None]
    if given:
        name = text_of(declarator.child_by_field_name("declarator"))
        sources.defaults[name], sources.file_of_default[name] = given, file


def _take_enum(sources: Sources, node: Any) -> None:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is None or body is None:
        return
    scoped = any(child.type in ("class", "struct") for child in node.children)
    for one in body.named_children:
        if one.type == "enumerator":
            plain = text_of(one.child_by_field_name("name"))
            qualified = f"{text_of(name)}::{plain}"
            sources.enums[qualified] = qualified
            if not scoped:
                sources.enums[plain] = qualified


def _take_class(sources: Sources, node: Any) -> None:
    name = node.child_by_field_name("name")
    if name is None or node.child_by_field_name("body") is None:
        return
    sources.structs.add(text_of(name))
    for child in node.named_children:
        if child.type == "base_class_clause":
            sources.bases[text_of(name)] = tuple(
                text_of(base) for base in child.named_children if base.type == "type_identifier"
            )


def _function_declarator(node: Any) -> Any:
    place = node.child_by_field_name("declarator")
    while place is not None and place.type in ("pointer_declarator", "reference_declarator"):
        place = next((one for one in place.named_children if one.type.endswith("declarator")), None)
    return place if place is not None and place.type == "function_declarator" else None


def _parameters(declarator: Any) -> list[Any]:
    kinds = ("parameter_declaration", "optional_parameter_declaration")
    return [one for one in declarator.child_by_field_name("parameters").named_children if one.type in kinds]


def _parameter(node: Any) -> tuple[str, bool, str]:
    constant = any(child.type == "type_qualifier" and text_of(child) == "const" for child in node.children)
    place = node.child_by_field_name("declarator")
    reference = place is not None and place.type == "reference_declarator"
    while place is not None and place.type != "identifier":
        place = next((one for one in place.named_children), None)
    name = "" if place is None else text_of(place)
    return name, reference and not constant, text_of(node.child_by_field_name("type"))
