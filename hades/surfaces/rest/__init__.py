"""The REST service: the only place that knows FastAPI, Starlette and uvicorn."""
