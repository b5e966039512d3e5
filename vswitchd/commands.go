package vswitchd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/antrail/antrail/vswitchd/unixctl"
)

// commands are those of ovs-appctl that read the switch.
func (b *bridges) commands() []unixctl.Command {
	return []unixctl.Command{
		{Name: "ofproto/list", Run: func(context.Context, []string) (string, error) {
			if name := b.name(); name != "" {
				return name + "\n", nil
			}
			return "", nil
		}},
		{Name: "fdb/show", Usage: "bridge", Min: 1, Max: 1, Run: func(_ context.Context, args []string) (string, error) {
			if b.name() != args[0] {
				return "", errors.New("no such bridge")
			}
			return b.learned(), nil
		}},
	}
}

// name is the bridge's; "" without one.
func (b *bridges) name() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil {
		return ""
	}
	return b.now.Name
}

// learned is the MAC addresses that the bridge has learned, as fdb/show prints them.
func (b *bridges) learned() string {
	var text strings.Builder
	text.WriteString(" port  VLAN  MAC                Age\n")
	for _, l := range b.client.LearnedMACs() {
		fmt.Fprintf(&text, "%5d  %4d  %v  %3d\n", l.Port, l.VLAN, l.MAC, time.Duration(l.Age)/time.Second)
	}
	return text.String()
}
