package appctl

import (
	"context"
	"errors"
	"strings"

	"github.com/antrail/antrail/vswitchd/unixctl"
)

// The switch has no bonds, LACP, spanning tree, CFM, BFD, auto-attach and multicast snooping. These
// commands answer as an Open vSwitch does where none of them is configured.

// absent are the commands about features that the switch lacks.
func (s *Switch) absent() []unixctl.Command {
	var changes []unixctl.Command
	for _, c := range []string{"bond/disable-member port member", "bond/enable-member port member", "bond/migrate port hash member", "bond/set-active-member port member"} {
		name, usage, _ := strings.Cut(c, " ")
		n := len(strings.Fields(usage))
		changes = append(changes, unixctl.Command{Name: name, Usage: usage, Min: n, Max: n, Run: unixctl.Refuse("no such bond")})
	}
	return append(changes, []unixctl.Command{
		{Name: "autoattach/show-isid", Usage: "[bridge]", Max: 1, Run: nothing("")},
		{Name: "autoattach/statistics", Usage: "[bridge]", Max: 1, Run: nothing("")},
		{Name: "autoattach/status", Usage: "[bridge]", Max: 1, Run: nothing("")},
		{Name: "bfd/set-forwarding", Usage: "[interface] normal|false|true", Min: 1, Max: 2, Run: ofAll("no such BFD object", 1)},
		{Name: "cfm/set-fault", Usage: "[interface] normal|false|true", Min: 1, Max: 2, Run: ofAll("no such CFM object", 1)},
		{Name: "stp/tcn", Usage: "[bridge]", Max: 1, Run: ofAll("no such stp object", 0)},
		{Name: "rstp/tcn", Usage: "[bridge]", Max: 1, Run: ofAll("No such RSTP object", 0)},
		{Name: "bond/list", Run: nothing("bond\ttype\trecircID\tmembers\n")},
		{Name: "bond/show", Usage: "[port]", Max: 1, Run: noneOf("no such bond")},
		{Name: "lacp/show", Usage: "[port]", Max: 1, Run: noneOf("no such lacp object")},
		{Name: "lacp/show-stats", Usage: "[port]", Max: 1, Run: noneOf("no such lacp object")},
		{Name: "cfm/show", Usage: "[interface]", Max: 1, Run: noneOf("no such CFM object")},
		{Name: "bfd/show", Usage: "[interface]", Max: 1, Run: noneOf("no such bfd object")},
		{Name: "stp/show", Usage: "[bridge]", Max: 1, Run: noneOf("no such stp object")},
		{Name: "rstp/show", Usage: "[bridge]", Max: 1, Run: noneOf("No such RSTP object")},
		{Name: "mdb/show", Usage: "bridge", Min: 1, Max: 1, Run: s.noSnooping},
		{Name: "mdb/flush", Usage: "[bridge]", Max: 1, Run: s.noSnooping},
	}...)
}

type answer = func(context.Context, []string) (string, error)

// nothing always answers with a text.
func nothing(text string) answer {
	return func(context.Context, []string) (string, error) { return text, nil }
}

// ofAll answers "OK" for all of none. It refuses an object that is named before n more arguments.
func ofAll(refusal string, n int) answer {
	return func(_ context.Context, args []string) (string, error) {
		if len(args) > n {
			return "", errors.New(refusal)
		}
		return "OK", nil
	}
}

// noneOf answers with an empty list. It refuses an object that is named.
func noneOf(refusal string) answer {
	return func(_ context.Context, args []string) (string, error) {
		if len(args) > 0 {
			return "", errors.New(refusal)
		}
		return "", nil
	}
}

// noSnooping is mdb/show and mdb/flush of a bridge without multicast snooping. Without a bridge,
// mdb/flush succeeds.
func (s *Switch) noSnooping(_ context.Context, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return flushed, nil
	case args[0] != s.Bridge():
		return "", errNoBridge
	}
	return "", errors.New("multicast snooping is disabled")
}
