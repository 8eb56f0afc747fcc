"""PostgreSQL: addresses, migrations, and transactions with a role and a tenant; what is stored is up to others."""
