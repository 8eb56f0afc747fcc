"""The routes of the page: its shell and assets for everybody, its data for those with a cookie or a token."""

from collections.abc import Callable
from gzip import compress
from typing import TYPE_CHECKING, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daypack.errors import AccessDenied, BadInput, DaypackError, NotFound
from daypack.memory.audit_log.record import Actor, actor
from daypack.serve.http.api import problem_response
from daypack.serve.http.application import PagePart, Part
from daypack.serve.http.gate import check_secret, client_address
from daypack.serve.http.page_requests import ACTIONS, ASSETS, DATA, ENTER, ENTER_HINT, LIVE, SHELL
from daypack.serve.observe.request_facts import current
from daypack.serve.page.access import PageAccess, cookie_header
from daypack.serve.page.assets import assets
from daypack.serve.page.live import TOKEN_SECONDS, Counts, EventStream, Live, describe_stream
from daypack.serve.page.start import show_start
from daypack.serve.page.views import registry
from daypack.serve.page.views.asked import Asked, Viewer
from daypack.serve.problems import Problem, report
from daypack.text.redact.redact import redact

if TYPE_CHECKING:
    from daypack.serve.http.limits import Shares
    from daypack.serve.http.tenants import Tenants
    from daypack.serve.http.turns import Call, Caller
    from daypack.serve.page.views.opened import OpenedHome

START = "start"
USED = "/?used"  # where an address leads whose token is used up, or of an earlier server: the page says so
_PATHS = {"/": "GET: the page, for browsers", "/page/": "the data of the page, with a cookie or a token"}
_KEPT = "public, max-age=31536000, immutable"
_GZIP_LEVEL, _GZIP_BYTES = 4, 2_000  # 4: a tenth smaller than 1, for 2 ms of half a megabyte
_STREAM_SHARE = 4  # streams use at most this part of the connections


class PageRoutes:
    """Answers the requests for the page of one server."""

    def __init__(self, tenants: "Tenants", shares: "Shares", home: "OpenedHome", access: PageAccess) -> None:
        self._tenants = tenants
        self._shares = shares
        self._home = home
        self._access = access
        self.live = Live(home, shares.limits.connections // _STREAM_SHARE)

    def as_part(self) -> PagePart:
        """Return the routes as a part of a server."""
        routes = [
            Route(ASSETS + "{name}", self.get_asset),
            Route(DATA + "{view}", self.get_data),
            Route(ACTIONS + "{action}", self.act, methods=["POST"]),
            Route(ENTER, self.enter, methods=["POST"]),
            Route(LIVE, self.follow),
        ]
        names = (START, *registry.VIEWS, *registry.ACTIONS)
        part = Part(routes, _PATHS, names, self.live.running, self.live.end_streams)
        return PagePart(part, self.get_shell, self._access)

    async def get_shell(self, request: Request) -> Response:
        """Answer GET / without any data. A one-time token in the address is exchanged for a cookie."""
        token = request.query_params.get("token")
        if not token:
            return Response(assets().shell, media_type="text/html", headers={"vary": "accept"})
        answer = Response(status_code=303, headers={"location": SHELL})
        if request.method != "GET":  # looking does not use it up
            return answer
        try:
            if await self._access.use_token(token):
                self._set_cookie(request, answer, self._access.new_cookie())
            else:
                answer.headers["location"] = USED
                await self._shares.count_bad_token(client_address(request.scope))
        except DaypackError as error:
            return problem_response(report(START, error))
        return answer

    async def get_asset(self, request: Request) -> Response:
        """Answer with the script or the style."""
        asset = assets().files.get(request.path_params["name"])
        if asset is None:
            return problem_response(Problem(404, "NotFound", "no such file", "load the page again"))
        headers = {"cache-control": _KEPT, "vary": "accept-encoding"}
        if not _accepts_gzip(request):
            return Response(asset.data, headers=headers, media_type=asset.media_type)
        return Response(asset.packed, headers=headers | {"content-encoding": "gzip"}, media_type=asset.media_type)

    async def get_data(self, request: Request) -> Response:
        """Answer with what a view shows."""
        asked = Asked(request.path_params["view"], dict(request.query_params), self._viewer(request))
        if asked.view != START:
            return await self._answer(request, asked, lambda: registry.show(self._home, asked))
        write_token = self._access.write_token(request.scope["daypack.pass"])
        return await self._answer(request, asked, lambda: show_start(self._home, asked.viewer, write_token))

    async def act(self, request: Request) -> Response:
        """Carry out an action; the header proves that the page sent it."""
        body, name = request.scope["daypack.json"], request.path_params["action"]
        asked = Asked(name, _read_texts(body) or {}, self._viewer(request))

        def work() -> object:
            if _read_texts(body) is None:
                raise BadInput("the body must be an object of texts", operation=name, hint='send {"name": "text", …}')
            asked.require_write()
            sent = request.headers.get("x-daypack-write", "")
            if not self._access.is_write_token(request.scope["daypack.pass"], sent):
                hint = "send the header X-Daypack-Write with the write_token of /page/data/start"
                raise AccessDenied("the write token is missing or wrong", operation=name, hint=hint)
            return registry.act(self._home, asked)

        return await self._answer(request, asked, work)

    async def enter(self, request: Request) -> Response:
        """Exchange a one-time token or an access token for a cookie."""
        token = (_read_texts(request.scope["daypack.json"]) or {}).get("token", "").strip()
        user = secret = token_id = ""
        try:
            if not await self._access.use_token(token):
                secret, address = token, client_address(request.scope)
                caller = await check_secret(self._tenants.check_token, self._shares, secret, address)
                if caller is None:
                    return problem_response(Problem(401, "AccessDenied", "the token is not valid", ENTER_HINT))
                user, token_id = caller.user, caller.token_id
                await self._shares.check_rate(user)
        except DaypackError as error:
            return problem_response(report("enter", error))
        answer = Response(b'{"entered":true}', media_type="application/json")
        self._set_cookie(request, answer, self._access.new_cookie(user, secret, token_id))
        return answer

    async def follow(self, request: Request) -> Response:
        """Answer with events, until the page is closed."""
        call: Call = request.scope["daypack.call"]
        asked = Asked("live", dict(request.query_params), self._viewer(request))
        agent, session = asked.text("agent", ""), asked.text("session", "")
        watched = (agent, session) if agent and session else None
        counts: Counts | None = None
        try:
            asked.require_owner()
            if watched is not None:
                name = watched
                counts = await self._tenants.run(lambda: self.live.count(name), call)
        except DaypackError as error:
            return problem_response(report("live", error))
        if request.method == "HEAD":
            return describe_stream()
        # A token may expire or be revoked: the page connects again, which checks it.
        seconds = TOKEN_SECONDS if call.caller.token_id else None
        stream = self.live.open(call.caller.user, watched, counts, seconds)
        call.on_leave(stream.end)
        return EventStream(self.live, stream)

    async def _answer(self, request: Request, asked: Asked, work: Callable[[], object]) -> Response:
        packs = _accepts_gzip(request)

        def run() -> tuple[bytes, bool]:
            facts = current.get()
            if facts is not None:  # for the audit log
                actor.set(Actor("http", facts.token_id, facts.request_id))
            body = msgspec.json.encode(work())
            is_packed = packs and len(body) > _GZIP_BYTES
            return (compress(body, _GZIP_LEVEL) if is_packed else body), is_packed

        try:
            body, is_packed = await self._tenants.run(run, request.scope["daypack.call"])
        except DaypackError as error:
            return problem_response(_describe(asked, error))
        headers = {"vary": "accept-encoding"} | ({"content-encoding": "gzip"} if is_packed else {})
        return Response(body, headers=headers, media_type="application/json")

    def _viewer(self, request: Request) -> Viewer:
        caller: Caller = request.scope["daypack.caller"]
        return Viewer(caller.user, owner=caller.user == self._tenants.owner, writes=caller.writes)

    def _set_cookie(self, request: Request, answer: Response, value: str) -> None:
        is_secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
        port = request.scope["daypack.origin"].port
        answer.headers["set-cookie"] = cookie_header(port, value, secure=is_secure)


def _describe(asked: Asked, error: DaypackError) -> Problem:
    """Return a problem as the viewer may see it: the owner of the files may read where they are damaged."""
    problem = report(asked.view, error)
    if not asked.viewer.owner or isinstance(error, NotFound | BadInput):
        return problem
    return problem._replace(message=redact(str(error.problem)).text, hint=redact(error.hint).text)


def _accepts_gzip(request: Request) -> bool:
    for coding in ",".join(request.headers.getlist("accept-encoding")).lower().split(","):
        name, _, weight = coding.replace(" ", "").partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or not weight
    return False


def _read_texts(body: object) -> dict[str, str] | None:
    if not isinstance(body, dict):
        return None
    fields = cast("dict[str, object]", body)
    return cast("dict[str, str]", fields) if all(isinstance(value, str) for value in fields.values()) else None
