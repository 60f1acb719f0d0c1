"""The permissions there are, and which role holds which."""

from tenants.models import Membership

CHAT_WRITE = "chat:write"
RUNS_WRITE = "runs:write"
RUNS_READ = "runs:read"
JOURNAL_READ = "journal:read"
KEYS_WRITE = "keys:write"
ADMIN = "admin"

ALL = frozenset({CHAT_WRITE, RUNS_WRITE, RUNS_READ, JOURNAL_READ, KEYS_WRITE, ADMIN})

OF_ROLE: dict[str, frozenset[str]] = {
    Membership.Role.OWNER: ALL,
    Membership.Role.ADMIN: ALL,
    Membership.Role.MEMBER: ALL - {ADMIN},
    Membership.Role.VIEWER: frozenset({RUNS_READ, JOURNAL_READ}),
}
