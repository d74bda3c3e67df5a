"""S3-compatible servers: HTTP, path-style, signed (SigV4) with credentials found where AWS' own tools find them."""

from __future__ import annotations

import os
from typing import Any

import requests
from requests.auth import AuthBase

_REGION = "us-east-1"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


class NoCredentials(Exception):
    """Nothing can be signed; the text says what was looked for."""


class SigV4(AuthBase):
    """Signs a request and its body."""

    def __init__(self, credentials: Any, region: str) -> None:
        self._credentials = credentials
        self._region = region

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest

        # No headers but those that the signature needs: a proxy may change the others.
        signed = AWSRequest(method=request.method, url=request.url, data=request.body or b"")
        # Asked anew each time: those of a role run out.
        S3SigV4Auth(self._credentials.get_frozen_credentials(), "s3", self._region).add_auth(signed)
        request.headers.update(dict(signed.headers.items()))
        return request


def access(url: str) -> tuple[str, SigV4]:
    """For ``s3://bucket/prefix``: the URL below which the objects are, and what signs requests.

    ``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL`` names a server other than Amazon's.

    Raises:
        NoCredentials: none are found.
    """
    from botocore.exceptions import BotoCoreError
    from botocore.session import get_session

    session = get_session()
    try:
        credentials, profile = session.get_credentials(), session.get_scoped_config()
        region = os.environ.get("AWS_REGION") or session.get_config_variable("region") or _REGION
    except BotoCoreError as error:
        raise NoCredentials(str(error)) from error
    if credentials is None:
        raise NoCredentials("no credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE)")
    named = [os.environ[name] for name in _ENDPOINTS if os.environ.get(name)]
    endpoint = next(iter([*named, str(profile.get("endpoint_url") or "")]))
    root = endpoint.rstrip("/") or f"https://s3.{region}.amazonaws.com"
    return f"{root}/{url.removeprefix('s3://')}", SigV4(credentials, region)
