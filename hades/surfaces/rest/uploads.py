"""Routes that take files in: announce them, send each, finish; or name a folder of this machine."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from hades.surfaces.rest.services import Served

writing = APIRouter(tags=["uploads"])


class AnnouncedFiles(BaseModel):
    """The files of an upload."""

    files: dict[str, int] = Field(
        description="Bytes of each file by its path below a folder.", examples=[{"manual/install.md": 2048}]
    )


class FolderBody(BaseModel):
    """A folder of the machine that serves."""

    path: Annotated[str, Field(min_length=1, max_length=4096, description="Below a folder of `--allow-folder`.")]


@writing.post("/uploads", status_code=201, summary="Announce files")
async def begin(body: AnnouncedFiles, services: Served) -> dict[str, str]:
    """Check names, types, sizes and number; one that cannot be taken refuses all of them."""
    return {"upload": await services.work(services.uploads.begin, body.files, writes=True)}


@writing.put("/uploads/{upload}/files/{path:path}", status_code=204, summary="Send a file")
async def put(upload: str, path: str, request: Request, services: Served) -> None:
    """The content of an announced file as the body; one that is refused ends the upload."""
    await services.work(services.uploads.put, upload, path, await request.body(), writes=True)


@writing.post("/uploads/{upload}/finish", status_code=202, summary="Keep the files and read them")
async def finish(upload: str, services: Served) -> dict[str, int]:
    """Reading goes on after the reply; `GET /v1/uploads` tells how far it is."""
    return {"files": await services.work(services.uploads.finish, upload, writes=True)}


@writing.post("/uploads/folder", status_code=202, summary="Read a folder of this machine")
async def read_folder(body: FolderBody, services: Served) -> dict[str, Any]:
    """Only folders that the service was started with."""
    await services.work(services.uploads.read_folder, body.path, writes=True)
    return {"path": body.path}


@writing.get("/uploads", summary="How far reading is")
async def status(services: Served) -> dict[str, Any]:
    """`state` is idle, reading (with `stage`, `done` and `total`), ready or failed (with `problem`)."""
    return await services.work(services.uploads.status)
