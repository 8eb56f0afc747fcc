"""What Claude Code 2.1.325 sends to a status line."""

import json
from typing import Any


def host_input(**changes: Any) -> bytes:
    """Return the input after a turn, with some fields changed."""
    fields: dict[str, Any] = {
        "session_id": "7175a1ac-1287-4d45-b82e-d0727e7f22a3",
        "transcript_path": "/home/ada/.claude/projects/-src-app/7175a1ac-1287-4d45-b82e-d0727e7f22a3.jsonl",
        "cwd": "/src/app",
        "prompt_id": "92b21392-1598-4004-833d-02f5187e191d",
        "effort": {"level": "medium"},
        "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
        "workspace": {"current_dir": "/src/app", "project_dir": "/src/app", "added_dirs": []},
        "version": "2.1.325",
        "output_style": {"name": "default"},
        "cost": {"total_cost_usd": 0.1399, "total_duration_ms": 17911, "total_api_duration_ms": 224},
        "context_window": {
            "total_input_tokens": 160000,
            "total_output_tokens": 7,
            "context_window_size": 200000,
            "current_usage": {
                "input_tokens": 2000,
                "output_tokens": 700,
                "cache_creation_input_tokens": 8000,
                "cache_read_input_tokens": 150000,
            },
            "used_percentage": 80,
            "remaining_percentage": 20,
        },
        "exceeds_200k_tokens": False,
        "prompt_cache": {
            "warm": True,
            "caching_observed": True,
            "ttl": "5m",
            "expires_at": 1794962400,
            "requests": 30,
            "misses": 2,
            "expected_rebuilds": 0,
            "hit_ratio": 0.93,
            "cache_write_tokens": 8000,
            "miss_recache_tokens": 0,
            "last_miss_at": 1794962100,
            "last_miss_cause": {"causes": ["tools_changed"], "tools_added": 1, "system_char_delta": 0},
            "recache_tokens_if_cold": 160000,
        },
        "fast_mode": False,
        "thinking": {"enabled": True},
    }
    return json.dumps(fields | changes).encode()
