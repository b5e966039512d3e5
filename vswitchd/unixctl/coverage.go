package unixctl

import "context"

// Coverage are coverage/show and coverage/read-counter of a daemon that counts no events: other
// commands show the switch's counters. The hash is FNV-1a's of no names.
func Coverage() []Command {
	return []Command{
		{Name: "coverage/show", Run: func(context.Context, []string) (string, error) {
			return "Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=811c9dc5:\n0 events never hit\n", nil
		}},
		{Name: "coverage/read-counter", Usage: "COUNTER", Min: 1, Max: 1, Run: Refuse("No such counter")},
	}
}
