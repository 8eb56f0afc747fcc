"""PostgreSQL: addresses, migrations, and transactions with a role and a tenant; what is stored is up to others."""

import math

SHORT_SECONDS = 5.0  # the patience of what is waited for: calls to servers, commands, closing a session
first_patience = math.inf  # of all databases of this process until they have answered once; a command sets it
