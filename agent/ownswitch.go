package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/switchd/local"
)

// The switch of an agent that is given none (Config.Switch). The agent launches it, and
// opens its ports. The switch has no privilege, and outlives an agent that is killed: the
// next agent finds it at its socket. On SIGTERM an agent ends its switch.

// ownerOf is who makes taps.
func ownerOf(c *config.Config) string { return host.LinkAlias(c.Socket) }

// switchSettings are those of the switch that the agent launches.
func switchSettings(c *config.Config, log *slog.Logger) local.Settings {
	return local.Settings{
		Workers: c.Workers, Conntrack: c.Conntrack, ConnectionCache: c.ConnectionCache, Offload: c.Offload,
		KeepAwake: c.KeepsAwake(log), AFXDP: c.AFXDP, SharedPorts: []uint32{c.Gateway.OFPort, c.Tunnel.OFPort}, Owner: ownerOf(c),
		Pod: switchPod(c),
	}
}

// switchPod is the pod of the switch's process; "" if that is a child.
func switchPod(c *config.Config) string {
	if c.Await == "" {
		return ""
	}
	return os.Getenv("POD_NAME")
}

// beginSwitch launches the switch, unless one runs already that is like it. ended receives
// how a switch ended that was launched.
func (a *Agent) beginSwitch(ctx context.Context) (ended <-chan error, err error) {
	if a.config.Await != "" && a.waiting == nil {
		if a.waiting, err = switchd.ListenWaiting(a.config.Await, switchPod(a.config), a.log); err != nil {
			return nil, err
		}
	}
	settings := switchSettings(a.config, a.log)
	running := door.Dial(a.config.SwitchSocket())
	info, err := running.Info(ctx)
	if away := (*door.AwayError)(nil); errors.As(err, &away) {
		return a.launch(ctx, settings, false)
	}
	why := "it speaks another version of the door"
	if err == nil {
		why = a.unlike(info, &settings)
	}
	if why == "" {
		a.found = true
		a.log.Info("the switch of the agent before runs on", "pid", info.PID)
		go a.runChild(info.PID)
		return nil, nil
	}
	a.log.Info("the switch of the agent before is replaced", "why", why)
	if err != nil {
		return a.restart(ctx, running, settings)
	}
	go a.runChild(info.PID)
	return a.replace(ctx, running, info, settings)
}

// replace launches a switch that takes the place of the one that runs, without a gap. If
// that cannot be, the switch is restarted.
func (a *Agent) replace(ctx context.Context, running *door.Client, info *door.SwitchInfo, settings local.Settings) (<-chan error, error) {
	var had local.Settings
	err := json.Unmarshal(info.Settings, &had)
	if err == nil {
		err = had.GoesOnAs(&settings)
	}
	if err == nil {
		var ended <-chan error
		if ended, err = a.launch(ctx, settings, true); err == nil {
			a.found = true
			return ended, nil
		}
	}
	a.log.Warn("the switch is not replaced without a gap: it is ended, and another started", "error", err)
	return a.restart(ctx, running, settings)
}

// restart ends the switch that runs, and launches another, which begins with its files.
func (a *Agent) restart(ctx context.Context, running *door.Client, settings local.Settings) (<-chan error, error) {
	if err := endOther(ctx, running); err != nil {
		return nil, err
	}
	return a.launch(ctx, settings, false)
}

// unlike says why a switch that runs is to be replaced; "" if it is not.
func (a *Agent) unlike(info *door.SwitchInfo, settings *local.Settings) string {
	want, err := json.Marshal(settings)
	switch {
	case err != nil:
		return err.Error()
	case a.config.NewSwitch:
		return "so it was asked for"
	case info.Release != a.config.Release:
		return fmt.Sprintf("it is of %s, and this is %s", info.Release, a.config.Release)
	case string(info.Settings) != string(want):
		return "the configuration has other settings"
	}
	return ""
}

// launch starts the switch. It takes the place of one that runs, if that is wanted.
func (a *Agent) launch(ctx context.Context, settings local.Settings, over bool) (<-chan error, error) {
	c := a.config
	l := switchd.Launch{UID: switchd.ConfinedUID, Into: a.waiting}
	if err := l.Level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return nil, err
	}
	if err := moveFiles(c); err != nil {
		return nil, err
	}
	p := &switchd.Process{
		Socket: c.SwitchSocket(), Dir: c.SwitchDir(), Settings: settings, Release: c.Release, Log: a.log, TakeOver: over,
	}
	sw, err := p.Start(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("the switch: %w", err)
	}
	return sw.Ended, nil
}

// moveFiles gives the switch the files of an agent whose switch was in its own process.
func moveFiles(c *config.Config) error {
	if err := os.MkdirAll(c.SwitchDir(), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"ct.arena", "select.seed"} { // as package switchd names them
		from, to := c.BesideSocket(name), filepath.Join(c.SwitchDir(), name)
		if _, err := os.Lstat(from); errors.Is(err, os.ErrNotExist) {
			continue // the directory may be one that root itself may not search
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	return nil
}

// runChild waits for a switch that this process may have launched before it executed itself
// again. Otherwise the kernel would keep its exit status.
func (a *Agent) runChild(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Wait() // the error says that the process is no child, and does not matter
	}
}

// lentTime is how long a port outlives its switch by what that has lent. Until then the kernel
// forwards the connections that it was offloaded.
const lentTime = time.Second

// revive launches the switch again that has ended, and opens its ports. It has its entries
// and connections from its files, so that packets pass before the agent has asked it for
// anything.
func (a *Agent) revive(ctx context.Context) error {
	defer time.AfterFunc(lentTime, a.opened.giveBackAll).Stop()
	ended, err := a.beginSwitch(ctx)
	if err != nil {
		return err
	}
	sw := door.Dial(a.config.SwitchSocket())
	if err := a.untilAnswer(ctx, sw, ended); err != nil {
		return err
	}
	a.opened.reopen(sw)
	if err := a.heldRoutes.again(sw); err != nil {
		a.log.Warn("multicast routes end, and are made again", "error", err)
	}
	return nil
}

// EndSwitch ends the switch that a killed agent has left; socket is the agent's. It returns
// nil if there is none.
func EndSwitch(ctx context.Context, socket string) error {
	return endOther(ctx, door.Dial(config.SwitchSocket(socket)))
}

// endOther ends a switch that has no controller, or none soon: that of an agent which was
// killed a moment ago.
func endOther(ctx context.Context, sw *door.Client) error {
	for end := time.Now().Add(leaveTime); time.Now().Before(end); time.Sleep(switchRetry) {
		if info, err := sw.Info(ctx); err != nil || info.Controller == "" {
			break
		}
	}
	return sw.End(ctx)
}

// endSwitch closes the ports of the agent's switch, with what they leave on the Node, and
// ends it.
func (a *Agent) endSwitch() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if a.opened.sw == nil {
		a.opened.sw = door.Dial(a.config.SwitchSocket())
	}
	if a.config.Await != "" {
		os.Remove(a.config.Await)
	}
	err := errors.Join(a.opened.removeAll(), a.opened.sw.End(ctx), cleanTaps(a.config.Socket, func(string) {}))
	if gone := os.Remove(a.config.SwitchSocket()); !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
