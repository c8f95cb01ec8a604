"""Check one webhook notification; copy verify() into your receiver.

    API_KEY=trb_... python3 verify.py SIGNATURE [SIGNATURE_NEXT] < body.json

Needs nothing but the standard library of Python 3.8 or later.
"""
import hashlib
import hmac
import json
import os
import sys
from datetime import datetime, timedelta, timezone


def verify(body, signatures, api_key, max_age=timedelta(minutes=5)):
    """Check the raw body (bytes) against the values of X-Service-Hmac-SHA256 and
    X-Service-Hmac-SHA256-Next, and return the notification. Call it before
    anything parses the body. Raises ValueError."""
    want = hmac.new(api_key.encode(), body, hashlib.sha256).hexdigest().encode()
    # compare_digest takes the same time wherever the two differ
    known = [hmac.compare_digest(s.strip().lower().encode(), want) for s in signatures]
    if not api_key or not any(known):
        raise ValueError("the signature does not belong to this body and key")
    notification = json.loads(body)
    at = datetime.strptime(notification["delivered_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    age = abs(datetime.now(timezone.utc) - at)
    if age > max_age:
        raise ValueError(f"delivered_at is {age} away from now")
    return notification


if __name__ == "__main__":
    try:
        result = verify(sys.stdin.buffer.read(65536), sys.argv[1:], os.environ.get("API_KEY", ""))
    except (ValueError, KeyError, TypeError) as problem:
        sys.exit(str(problem))
    print("ok", result["webhook_id"])
