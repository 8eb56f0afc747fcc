"""The example snapshot of the protocol's specification."""

TEMPLATE = """\
{
  "version": 2.3,
  "runtime": {
    "round": 1,
    "workspace": "/workspace/path/",
    "datetime": "2026-02-25T10:00:00.000Z",
    "startup_at": 1700000000000
  },
  "memory": {
    "core": [
      {
        "id": "core-001",
        "type": "identity",
        "decay": 0.05,
        "confidence": 0.95,
        "round": 1,
        "tags": ["agent", "identity"],
        "content": "长期核心记忆"
      }
    ],
    "working": [
      {
        "id": "work-001",
        "type": "task",
        "decay": 0.4,
        "confidence": 0.78,
        "round": 1,
        "tags": ["task", "active"],
        "content": "当前任务相关记忆"
      }
    ],
    "ephemeral": [
      {
        "id": "temp-001",
        "type": "hint",
        "decay": 0.75,
        "confidence": 0.55,
        "round": 1,
        "tags": ["temporary"],
        "content": "临时上下文信息"
      }
    ]
  },
  "capabilities": [{ "name": "memory", "scope": "write_once" }],
  "active_task": "当前执行任务摘要"
}"""
