"""Two tables of sentences and the heading each belongs under; "-": it leaves the document as it is.

The rules were developed with the first table. The second was written before them and used only to measure them.
"""

from typing import NamedTuple


class Sample(NamedTuple):
    """A sentence, and the heading it is kept under; empty if it is not kept."""

    heading: str
    sentence: str


def _read(table: str) -> list[Sample]:
    parts = [line.partition(" | ") for line in table.strip().splitlines()]
    return [Sample(heading.strip(" -"), sentence.strip()) for heading, _, sentence in parts]


DEVELOPMENT = _read("""
Facts      | Maria is the new project manager.
Facts      | The API key rotation happens every 90 days.
Facts      | The boat of Ada is blue.
Facts      | Our office is on the third floor of the Meyer building.
Facts      | The staging server runs Debian.
Facts      | Tomás speaks Portuguese and French.
Facts      | The billing service depends on the ledger database.
Facts      | Invoices go out on the first Monday of each month.
Facts      | Grandma's recipe calls for rye flour.
Facts      | The warehouse in Lyon closes at noon on Saturdays.
Facts      | Priya reports to Jonas.
Facts      | The customer prefers phone calls over email.
Facts      | Backups are stored in the Frankfurt region.
Facts      | Leo can't eat gluten.
Facts      | The printer on level two only accepts A4 paper.
Facts      | Nadia's son plays the cello.
Facts      | The Wi-Fi password for guests is on the fridge.
Facts      | The contract with Helios covers support and training.
Facts      | My cat is called Biscuit.
Facts      | I'm a nurse in a children's hospital.
Facts      | The parser is written in Rust.
Facts      | Omar and Lucy share the studio on Kent Street.
Timeline   | The audit takes place on 12 March 2027.
Timeline   | Hanna joined the team in 2019.
Timeline   | The lease ends on 30 June 2026.
Timeline   | On 4 May the supplier delivered the new pumps.
Decisions  | We decided to drop support for Python 3.8.
Decisions  | The team agreed that releases happen on Tuesdays.
Decisions  | Decision: the logo stays green.
Decisions  | The board approved the second budget.
Decisions  | We're going with the cheaper courier.
Decisions  | Never deploy on a Friday.
Decisions  | They chose oak for the floor.
Decisions  | From now on all meetings are in English.
Open tasks | TODO: renew the domain before it expires.
Open tasks | Todo - order more filters.
Open tasks | Action item: Karim sends the draft to legal.
Open tasks | We still need to paint the fence.
Open tasks | Please book a table for six people at Luna.
Open tasks | Remind me to water the plants on Sunday.
-          | Good morning, everybody!
-          | Thanks a lot, that was really helpful.
-          | How long does the battery last?
-          | What if the supplier goes bankrupt?
-          | If the train were late, we would miss the concert.
-          | Maybe Carla is the one who knows.
-          | The weather is lovely today.
-          | Sounds like a plan!
-          | I wonder whether Ben is coming.
-          | You asked about the deployment earlier.
-          | Traceback (most recent call last):
-          | npm WARN deprecated request@2.88.2
-          | Haha, that is so funny.
-          | I see what you mean.
-          | Your last answer was a bit too long.
-          | Imagine the moon is made of cheese.
-          | I'm just looking at the logs now.
-          | Could be the cable.
-          | That's exactly what I was thinking.
-          | Let me think about it for a moment.
""")

HELD_OUT = _read("""
Facts      | Dr. Okafor runs the clinic in Abuja.
Facts      | The garage door opens with a four-digit code.
Facts      | Elena is left-handed.
Facts      | Our main competitor is Northwind.
Facts      | The mobile app stores its tokens in the system keychain.
Facts      | Sven and Mia have twins.
Facts      | The choir rehearses in the old town hall.
Facts      | Access to the lab requires a badge.
Facts      | The red folder contains the signed contracts.
Facts      | Hugo never works on Wednesdays.
Facts      | The test suite takes about forty minutes.
Facts      | Kenji's visa is valid for three years.
Facts      | The newsletter has eleven thousand subscribers.
Facts      | Every pull request needs two approvals.
Facts      | Paula used to live in Lima.
Facts      | The house on Elm Road belongs to the Schmidt family.
Facts      | Rana is allergic to penicillin.
Facts      | Logs are kept for thirty days.
Facts      | The school bus leaves from the north gate.
Facts      | Ingrid teaches chemistry at the technical college.
Facts      | Our landlord lives upstairs.
Facts      | The old boiler uses more gas than the new one.
Timeline   | The conference starts on 9 September 2026.
Timeline   | Farid was born in 1984.
Timeline   | Version 2 shipped on 2025-11-03.
Timeline   | The bridge has been closed since 14 January.
Decisions  | We have settled on the blue uniform.
Decisions  | It was agreed that Marta leads the migration.
Decisions  | Decision: no meetings on Fridays.
Decisions  | The committee voted for the northern route.
Decisions  | Let's go with the monthly plan.
Decisions  | Always run the linter before you push.
Decisions  | Management decided against a second shift.
Decisions  | I've decided to sell the car.
Open tasks | TODO: check the smoke detectors in the basement.
Open tasks | To do: buy a present for Lina.
Open tasks | Please cancel the gym membership.
Open tasks | I have to return the library books.
Open tasks | Don't forget to charge the camera.
Open tasks | Action item - update the onboarding guide.
-          | Hello, nice to see you again!
-          | Thank you so much for your patience.
-          | Who is responsible for the garden?
-          | Suppose Anna were the queen of Spain.
-          | If I had a million, I would buy an island.
-          | Perhaps the key is under the mat.
-          | It is raining again.
-          | Great job, team!
-          | I'm not sure this makes sense.
-          | As I said before, it's complicated.
-          | ERROR: connection refused at 10.0.0.3:5432
-          | + git push origin main
-          | Lol, what a day.
-          | That's a good point.
-          | Can you rephrase your previous message?
-          | It would be nice if someone cleaned the kitchen.
-          | Let me check.
-          | No worries, take your time.
-          | He said it was fine.
-          | This conversation is getting long.
""")
