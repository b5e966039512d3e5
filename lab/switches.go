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

// Each agent of a lab launches its switch, and ends it on SIGTERM. If the agent is killed,
// its switch goes on in the Node's namespace.

// SwitchSocket is the door socket of a Node's switch.
func (l *Lab) SwitchSocket(node string) string { return config.SwitchSocket(l.Socket(node)) }

// SwitchPID is the PID of a Node's switch. If the switch does not answer, that is an error.
func (l *Lab) SwitchPID(ctx context.Context, node string) (int, error) {
	info, err := door.Dial(l.SwitchSocket(node)).Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.PID, nil
}

// KillSwitch ends a Node's switch by SIGKILL and waits until it is gone. The agent starts
// another.
func (l *Lab) KillSwitch(ctx context.Context, node string) error {
	pid, err := l.SwitchPID(ctx, node)
	if err != nil {
		return err
	}
	p, ok := processOf(pid)
	if !ok {
		return fmt.Errorf("the switch of %s has PID %d, but there is no such process", node, pid)
	}
	signal([]Process{p}, unix.SIGKILL)
	if left := waitGone([]Process{p}, stopTime); len(left) > 0 {
		return fmt.Errorf("processes %v still run after SIGKILL", left)
	}
	return nil
}

// WaitAgent waits until a Node's agent is ready and controls the Node's switch.
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
			return fmt.Errorf("the agent of %s does not control its switch: %w:\n%s", node, errors.Join(ctx.Err(), err), tail(l.Log(node)))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
