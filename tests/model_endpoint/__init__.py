"""A scripted model on loopback that real clients call, and that refuses what the provider would refuse.

It speaks OpenAI's chat completions and responses and Anthropic's messages, whole and as server-sent events:

    with ModelEndpoint(Say("Hello.", calls=(Call("read_file", {"path": "a.py"}),)), "Done.") as endpoint:
        client = OpenAI(base_url=endpoint.openai_url, api_key="none")

A request is checked against the types that the client library publishes, and against the provider's rules about order,
tools and images. A request that breaks one gets the provider's 400, and leaving the `with` block fails the test.
"""

from model_endpoint.script import TOO_LONG, Call, Fail, Say, Step
from model_endpoint.server import ModelEndpoint, Request

__all__ = ["TOO_LONG", "Call", "Fail", "ModelEndpoint", "Request", "Say", "Step"]
