"""What the model says to the examples of docs/guide.md, in their order."""

from model_endpoint import TOO_LONG, Call, Say, Step

GUIDE: tuple[Step, ...] = (
    # First loop
    "Jupiter.",
    "Mercury.",
    # Tools
    Say(calls=(Call("read_file", {"path": "notes.txt"}),)),
    "On Friday.",
    "A red boat.",
    # Streaming
    Say("One, two, three."),
    Say("One, two, three, four, five, six."),
    "Four, five, six.",
    # Anthropic
    "I am Claude.",
    "Claude.",
    "Now I am GPT.",
    # Rules
    "I will.",
    # Memory
    "She is 34 feet long.",
    # Errors
    TOO_LONG,
    Say(calls=(Call("read_file", {"path": "notes.txt"}),)),
    "Still on Friday.",
    # Threads, asyncio, processes
    "Yes.",
    "Yes.",
)
