package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"golang.org/x/sys/unix"
)

// Each agent of a lab launches its switch, and ends it when it is told to stop. A switch
// whose agent was killed goes on, in the Node's namespace.

// SwitchSocket is the door of a Node's switch.
func (l *Lab) SwitchSocket(node string) string { return config.SwitchSocket(l.Socket(node)) }

// SwitchPID is the process of a Node's switch. The error is that of a switch that does not
// answer.
func (l *Lab) SwitchPID(ctx context.Context, node string) (int, error) {
	info, err := door.Dial(l.SwitchSocket(node)).Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.PID, nil
}

// KillSwitch ends a Node's switch by SIGKILL, as it stands, and waits until it is gone.
// The agent starts it again.
func (l *Lab) KillSwitch(ctx context.Context, node string) error {
	pid, err := l.SwitchPID(ctx, node)
	if err != nil {
		return err
	}
	p, ok := processOf(pid)
	if !ok {
		return fmt.Errorf("the switch of %s is no process %d", node, pid)
	}
	signal([]Process{p}, unix.SIGKILL)
	if left := waitGone([]Process{p}, stopTime); len(left) > 0 {
		return fmt.Errorf("processes %v do not end", left)
	}
	return nil
}

// WaitAgent waits until the agent of a Node is the controller of the Node's switch, and
// ready.
func (l *Lab) WaitAgent(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	client := door.Dial(l.SwitchSocket(node))
	for {
		info, err := client.Info(ctx)
		if err == nil && info.Controller != "" {
			return l.waitReady(ctx, node, nil)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the agent of %s does not find its switch: %w:\n%s", node, errors.Join(ctx.Err(), err), tail(l.Log(node), 2000))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
