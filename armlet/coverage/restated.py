"""The code of ONNX Runtime's core and of its providers that is restated in Python, with the hash of its text."""

from __future__ import annotations

from armlet.coverage.core import Restated

_CORE = "onnxruntime/core"


def _of(file: str, *rows: tuple[str, str, str]) -> tuple[Restated, ...]:
    return tuple(Restated(f"{_CORE}/{file}", function, by, sha256) for function, by, sha256 in rows)


CORE: tuple[Restated, ...] = (
    *_of(
        "framework/node_unit.cc",
        ("NodeUnit::InitForSingleNode", "units", "494bedf703ad4fa64f11ec7c7d22c8a760731130d2f3f54563db79382d344fb7"),
        ("GetQLinearOpType", "units", "00dd94b16f37620fbaa3ec94a8b5a79ebccd9ac1461a47ba46f3c3e804479c04"),
        ("IsUnaryQLinearOp", "units", "dce68aa11484781d94b1cf7aee90412fe591a5c3ec2452a6bca6ab04c8fad806"),
        ("IsBinaryQLinearOp", "units", "2cb802325213a549fa6093bb82e03fc7775a31cbe228b67a6b8bd356b3f830a3"),
        ("GetQDQIODefs", "units", "4d21f46a0067cdc15bc67e5e19098122197c3ae998cfc93d8a4d082f36c4de48"),
        (
            "QDQ::NodeGroup::CanCreateNodeGroup",
            "groups",
            "92011d526ce5965b2e7b1c0bbc53719c29be9aff1b2f84e071576fe2e939a0dc",
        ),
    ),
    *_of(
        "optimizer/qdq_transformer/selectors_actions/qdq_selectors.cc",
        (
            "NodeGroupSelector::CheckQDQNodes",
            "groups",
            "d915eb939266241ff5f06afeecddca41f36d0108f6633bada680f65455b592c5",
        ),
        (
            "NodeGroupSelector::GetQDQSelection",
            "groups",
            "4d8fde05138da1b41af10f463d943c71932821892aeb0af361be52266ac24ac9",
        ),
        (
            "DropQDQNodeGroupSelector::Check",
            "groups",
            "42671d5c8b0400a90003fdc35f14737ae6b7154e54896cf9efa3d8f221931633",
        ),
        ("UnaryNodeGroupSelector::Check", "groups", "968bb7ddd6d2112279d07957e5ca81ea55207fa0ca2d714119fb44e4c25e2321"),
        ("ConvNodeGroupSelector::Check", "groups", "98b55ed9db7331f20503423b1411211074a3609c79d5661773d3c254d927c067"),
    ),
    *_of(
        "optimizer/qdq_transformer/selectors_actions/shared/utils.cc",
        ("GetMiscOpVersionsMap", "groups", "01cb7cf502dd864b6f5a45b987d0d4585dab38720325b59daf6a34d455444358"),
        ("GetUnaryOpVersionsMap", "groups", "f1a8f4fc5357ce19df6f880ec56936beda205840f10ff4dc1a71cfd23e322978"),
        ("GetAllNodeUnits", "predict", "2027956897b27c2e4f1bd93e32f7e78f0919c1f94a517816a2d715ba15e5a55a"),
    ),
    *_of(
        "optimizer/qdq_transformer/qdq_util.cc",
        ("IsClipMadeRedundantByQ", "groups", "609c212664dd9c459e0694b860257e97bd7563b714e9cbe4c0e5bdf6b5a2cb2f"),
        ("IsQDQPairSupported", "groups", "e4544d60e2916c439c86b59eb22a4422b6fbacfe584232aa77433350b6cceed6"),
    ),
    *_of(
        "providers/cpu/nn/pool_attributes.h",
        ("*", "units", "e0297aa541ca1e5dbd2694d81fa74c4a1b7fd397d5a052cc45a050146716fa9e"),
    ),
    *_of(
        "framework/graph_partitioner.cc",
        ("GetCapabilityForEP", "predict", "439fecaced35f270837ac9942c138765267b65617e337579e4389b03b47bfaea"),
        ("PlaceNode", "predict", "2d60375590ad5b1d8c7348b0de399530d71eca132cec5e941ba0da1e0f4452ff"),
        ("TryAssignNodes", "predict", "f8f1adb9be9d6f224e3992bd02244f2a249b9fb35f035edb3a305e510bec7244"),
    ),
    *_of(
        "framework/kernel_registry.cc",
        ("VerifyVersion", "kernels", "02e8e434ac401ef0a993ea96c21f61f5d49d49ffa12fb76658f382f57ea92b8e"),
        (
            "KernelRegistry::VerifyKernelDef",
            "tables",
            "857f6a3b6a43ce26c3e0f28dbb838b92b66eee0ae27d74c2aa57daca092421d1",
        ),
    ),
    *_of(
        "optimizer/layout_transformation/layout_transformation.cc",
        ("ConvertNodeLayout", "predict", "e8879f5523e9dc12ef1e09d641937ed35d85a8a20cc838a200871778ba146650"),
        ("PostLayoutTransformCostCheck", "predict", "251a1b1e557b6ecd70918263f72162222e17a0fd317d7fb5e002073d691e78f5"),
        ("TransformLayoutForEP", "predict", "51d254431724afdd5a7eede067b7ed8d20ddf3bd0d1e087141c863c44c819848"),
        ("IsSupportedOpset", "predict", "714a490f4d595eea67368ef9640da2917066c9cbc2f0c2d0245d9fecbb8dcbe5"),
    ),
)
"""What happens to every model, whoever its providers are."""

XNNPACK: tuple[Restated, ...] = (
    *_of(
        "providers/xnnpack/xnnpack_execution_provider.cc",
        (
            "XnnpackExecutionProvider::GetCapability",
            "predict",
            "aa87c226f0d794cc8a5685337f72b5782726fe101ebf57c5c0ad2fc3ee9f1b42",
        ),
        (
            "AddComputeCapabilityForNodeUnit",
            "predict",
            "d3f5c450b707024c463a123a2f7c53d02322ad8ecd286b6e812d2e3ac07c3478",
        ),
        (
            "AddComputeCapabilityForEachNodeInNodeUnit",
            "predict",
            "9c36d3ed25462697fac7eb95bf5a7cefdfa8d666b91a927e58200dc42cd7c481",
        ),
    ),
    *_of(
        "providers/xnnpack/detail/utils.cc",
        ("FuseQDQGroup", "hazards", "5e753789ae4715fb5508bc08e65edbdcdff8275245af840b7773375ba18843c5"),
        ("FuseActivation", "hazards", "679216f13c3b96fd0af348576fcdb05cd5f4e3161ae8971910f0ec8f469c0905"),
    ),
    *_of(
        "providers/xnnpack/math/softmax.cc",
        ("Softmax::Softmax", "hazards", "d90b4b00355f99ff458e09769165d433fd8b71173d87df0be537900f69b37dbe"),
    ),
    *_of(
        "providers/xnnpack/tensor/resize.cc",
        ("Resize::Resize", "hazards", "d52d2f609a03442d5907b9eb33a27997f326552853ed23fceac008118beca04e"),
    ),
)

ACL: tuple[Restated, ...] = (
    *_of(
        "providers/acl/acl_execution_provider.cc",
        (
            "ACLExecutionProvider::GetCapability",
            "predict",
            "75d018edf8e12d54736557e28a9d721fef888f8b8f62ae5dd565dedfc85cf028",
        ),
    ),
    *_of(
        "providers/acl/nn/conv.cc",
        ("Conv::Conv", "hazards", "55b1e09a673f46fe4f01772ada8fbae34414238361cf9f49d7da2e829cf38bc9"),
    ),
    *_of(
        "providers/acl/math/matmul.cc",
        ("MatMul::PrePack", "hazards", "9d84df53786dae5aabfdda141c465077540287f433070f8cfa05a702c366fe93"),
    ),
)
