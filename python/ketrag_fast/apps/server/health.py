"""Health, readiness and metrics."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ketrag_fast.apps.server.problems import Problem, stopping
from ketrag_fast.apps.server.replies import json_reply
from ketrag_fast.apps.server.service import Service


async def health(request: Request) -> Response:
    """Serve `GET /health`: the process answers."""
    return json_reply({"schema": "ketrag/health/1", "status": "ok"})


async def ready(request: Request) -> Response:
    """Serve `GET /ready`: indexes are open and models loaded; 503 while the service starts or stops."""
    service: Service = request.app.state.service
    if service.stopping:
        raise stopping()
    if not service.ready:
        raise Problem(503, "starting", "the service is starting", headers={"Retry-After": "1"})
    return json_reply({"schema": "ketrag/health/1", "status": "ready"})


async def metrics(request: Request) -> Response:
    """Serve `GET /metrics`, for Prometheus."""
    service: Service = request.app.state.service
    service.metrics.waiting.set(service.batcher.waiting + service.waiting_in_front())
    for entry in service.indexes:
        service.metrics.generation.labels(entry.name).set(entry.index.generation)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
