import hashlib

from fastapi import FastAPI

app = FastAPI()


def derive_key(user: str) -> str:
    return hashlib.scrypt(user.encode(), salt=b"salt", n=16384, r=8, p=1, maxmem=64 << 20).hex()


@app.get("/login")
async def login(user: str = "anna"):
    return {"key": derive_key(user)}


@app.get("/health")
async def health():
    return {"ok": True}
