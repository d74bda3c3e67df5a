"""S3-compatible servers: HTTP, path-style, signed (SigV4) with credentials found where AWS' own tools find them."""

from __future__ import annotations

import os

import requests
from requests.auth import AuthBase

from armlet.errors import ArmletError, Kind
from armlet.remote.settings import Address

_REGION = "us-east-1"


class SigV4(AuthBase):
    """Signs a request and its body."""

    def __init__(self, credentials: object, region: str) -> None:
        self._credentials = credentials
        self._region = region

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest

        # No headers but those that the signature needs: a proxy may change the others.
        signed = AWSRequest(method=request.method, url=request.url, data=request.body or b"")
        frozen = self._credentials.get_frozen_credentials()  # type: ignore[attr-defined]
        S3SigV4Auth(frozen, "s3", self._region).add_auth(signed)
        request.headers.update(dict(signed.headers.items()))
        return request


def access(address: Address) -> tuple[str, SigV4]:
    """The URL below which the objects are, and what signs requests.

    ``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL`` names a server other than Amazon's.

    Raises:
        ArmletError: (HOST) no credentials are found.
    """
    from botocore.exceptions import BotoCoreError
    from botocore.session import get_session

    session = get_session()
    try:
        credentials = session.get_credentials()
        region = session.get_config_variable("region") or session.get_scoped_config().get("region") or _REGION
        endpoint = _endpoint(session.get_scoped_config())
    except BotoCoreError as error:
        raise _lacking(address, str(error)) from error
    if credentials is None:
        raise _lacking(address, "none are found")
    bucket = address.url.removeprefix("s3://")
    return f"{endpoint or f'https://s3.{region}.amazonaws.com'}/{bucket}", SigV4(credentials, region)


def _endpoint(profile: dict[str, str]) -> str:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if os.environ.get(name):
            return os.environ[name].rstrip("/")
    return str(profile.get("endpoint_url") or "").rstrip("/")


def _lacking(address: Address, why: str) -> ArmletError:
    return ArmletError(
        f"no credentials for {address}: {why}",
        hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        kind=Kind.HOST,
    )
