"""The leaderboard: from submissions to a static site. Depends on `harness` and `pruners`, never the other way."""
