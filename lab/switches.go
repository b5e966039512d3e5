package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/switchd"
	"golang.org/x/sys/unix"
)

// A lab may run the switch of each Node in a process of its own (Options.Split). The
// switch is started before its agent and ends after it.

// splitEnv has labs run switches in processes of their own, by which tests run so too.
const splitEnv = "ANTRAIL_SPLIT"

// DefaultSplit is whether a lab's switches run in processes of their own when nobody says.
func DefaultSplit() bool { return os.Getenv(splitEnv) == "1" }

// confinedEnv has switches that are processes of their own run without privilege.
const confinedEnv = "ANTRAIL_CONFINED"

// DefaultConfined is whether such switches have no privilege when nobody says.
func DefaultConfined() bool { return os.Getenv(confinedEnv) == "1" }

// SwitchSocket is the door of a Node's switch, when that is a process of its own.
func (l *Lab) SwitchSocket(node string) string { return filepath.Join(l.Dir, node+".switch.sock") }

// SwitchLog is the log of a Node's switch.
func (l *Lab) SwitchLog(node string) string { return filepath.Join(l.Dir, node+".switch.log") }

// settings are those of a Node's switch, which the agent's configuration has otherwise.
func settings(c *agent.Config) *switchd.Settings {
	return &switchd.Settings{
		Workers: 2, Conntrack: c.Conntrack, ConnectionCache: c.ConnectionCache, Offload: c.Offload,
		KeepAwake: agent.KeepsAwake(agent.KeepAwakeAuto) == nil && c.KeepAwake != agent.KeepAwakeOff, AFXDP: c.AFXDP,
		SharedPorts: []uint32{agent.DefaultTunnelPort, agent.DefaultGatewayNo}, Owner: host.LinkAlias(c.Socket),
	}
}

// split has a Node's configuration use a switch of its own process, and writes that one's
// settings.
func (l *Lab) split(c *agent.Config) error {
	text, err := json.MarshalIndent(settings(c), "", "  ")
	if err != nil {
		return err
	}
	c.Switch = l.SwitchSocket(c.NodeName)
	c.Workers, c.Conntrack, c.ConnectionCache, c.Offload, c.KeepAwake, c.AFXDP = 0, agent.Conntrack{}, nil, "", "", agent.AFXDP{}
	return os.WriteFile(l.settingsFile(c.NodeName), append(text, '\n'), 0o600)
}

func (l *Lab) settingsFile(node string) string { return filepath.Join(l.Dir, node+".switch.json") }

// startSwitch starts a Node's switch in its namespace, and waits until it answers.
func (l *Lab) startSwitch(ctx context.Context, node, binary string, flags ...string) error {
	log, err := os.OpenFile(l.SwitchLog(node), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"switch", "--socket", l.SwitchSocket(node), "--settings", l.settingsFile(node)}, flags...)
	if l.State.Confined {
		args = append(args, "--confined")
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := l.namespace(node).Do(cmd.Start); err != nil {
		return fmt.Errorf("start the switch of %s: %w", node, err)
	}
	if p, ok := processOf(cmd.Process.Pid); ok {
		l.State.Switches = append(l.State.Switches, AgentState{node, p})
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	pid, err := l.waitSwitch(ctx, node, ended)
	if p, ok := processOf(pid); ok && l.State.Confined { // it is confined; the other one is its launcher
		l.State.Switches = append(l.State.Switches, AgentState{node, p})
	}
	return errors.Join(err, l.save())
}

// waitSwitch asks a switch until it answers, and says which process it is.
func (l *Lab) waitSwitch(ctx context.Context, node string, ended <-chan error) (pid int, err error) {
	client := door.Dial(l.SwitchSocket(node))
	for {
		info, err := client.Info(ctx)
		if err == nil {
			l.say("switch of %s runs", node)
			return info.PID, nil
		}
		select {
		case how := <-ended:
			return 0, fmt.Errorf("the switch of %s ended (%v):\n%s", node, how, tail(l.SwitchLog(node), 2000))
		case <-ctx.Done():
			return 0, fmt.Errorf("the switch of %s does not answer: %w:\n%s", node, errors.Join(ctx.Err(), err), tail(l.SwitchLog(node), 2000))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// SwitchPID is the process of a Node's switch; 0 when it has none of its own.
func (l *Lab) SwitchPID(node string) int {
	pid := 0
	for _, s := range l.State.Switches {
		if s.Node == node {
			pid = s.Process.PID // the last one: the first may be a launcher
		}
	}
	return pid
}

// KillSwitch ends a Node's switch by SIGKILL and waits until it is gone.
func (l *Lab) KillSwitch(node string) error {
	var all []Process
	l.State.Switches = slices.DeleteFunc(l.State.Switches, func(s AgentState) bool {
		if s.Node == node {
			all = append(all, s.Process)
		}
		return s.Node == node
	})
	if len(all) == 0 {
		return fmt.Errorf("lab %s has no switch process of %q", l.State.ID, node)
	}
	signal(all, unix.SIGKILL)
	if left := waitGone(all, stopTime); len(left) > 0 {
		return fmt.Errorf("processes %v do not end", left)
	}
	return l.save()
}

// StartSwitch starts a Node's switch again.
func (l *Lab) StartSwitch(ctx context.Context, node, binary string) error {
	binary, err := program(binary)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return l.startSwitch(ctx, node, binary)
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

// ReplaceSwitch starts a switch that takes the place of the one that runs, and waits until
// that one has ended and the new one answers.
func (l *Lab) ReplaceSwitch(ctx context.Context, node, binary string) error {
	binary, err := program(binary)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	at := slices.IndexFunc(l.State.Switches, func(s AgentState) bool { return s.Node == node })
	if at < 0 {
		return fmt.Errorf("lab %s has no switch process of %q", l.State.ID, node)
	}
	before := l.State.Switches[at].Process
	if err := l.startSwitch(ctx, node, binary, "--take-over"); err != nil {
		return err
	}
	for before.alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the switch of %s is not replaced: %w:\n%s", node, ctx.Err(), tail(l.SwitchLog(node), 2000))
		case <-time.After(5 * time.Millisecond):
		}
	}
	l.State.Switches = slices.Delete(l.State.Switches, at, at+1)
	_, err = l.waitSwitch(ctx, node, nil)
	return errors.Join(err, l.save())
}

// stopSwitches ends the recorded switch processes, if they are still the same.
func (l *Lab) stopSwitches() error {
	var all []Process
	for _, s := range l.State.Switches {
		all = append(all, s.Process)
	}
	return end(all, stopTime)
}
