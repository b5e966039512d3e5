package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/switchd/local"
)

// The agent's own switch (Config.Switch is not set). The agent launches it and opens its ports.
// The switch has no privilege, and outlives an agent that is killed: the next agent finds it at
// its socket. On SIGTERM an agent ends its switch.

// ownerOf is the link alias that marks the agent's taps.
func ownerOf(c *config.Config) string { return host.LinkAlias(c.Socket) }

// switchSettings are the settings of the switch that the agent launches.
func switchSettings(c *config.Config, log *slog.Logger) local.Settings {
	return local.Settings{
		Workers: c.Workers, Conntrack: c.Conntrack, ConnectionCache: c.ConnectionCache, Offload: c.Offload,
		KeepAwake: c.KeepsAwake(log), AFXDP: c.AFXDP, SharedPorts: []uint32{c.Gateway.OFPort, c.Tunnel.OFPort}, Owner: ownerOf(c),
		Pod: switchPod(c),
	}
}

// switchPod is the name of the pod that runs the switch; "" if the switch is a child process.
func switchPod(c *config.Config) string {
	if c.Await == "" {
		return ""
	}
	return os.Getenv("POD_NAME")
}

// beginSwitch launches the switch, unless a switch with the same settings runs. ended receives
// the exit of a launched switch.
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
	why := "it has another version of the API between agent and switch"
	if err == nil {
		why = a.unlike(info, &settings)
	}
	if why == "" {
		a.found = true
		a.log.Info("the previous agent's switch still runs", "pid", info.PID)
		go a.runChild(info.PID)
		return nil, nil
	}
	a.log.Info("the previous agent's switch is replaced", "why", why)
	if err != nil {
		return a.restart(ctx, running, settings)
	}
	go a.runChild(info.PID)
	return a.replace(ctx, running, info, settings)
}

// replace launches a switch that takes over from the running one without a gap. If that is not
// possible, it restarts the switch.
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
	a.log.Warn("the switch cannot be replaced without a gap: the agent restarts it", "error", err)
	return a.restart(ctx, running, settings)
}

// restart ends the running switch, and launches another, which reads its files.
func (a *Agent) restart(ctx context.Context, running *door.Client, settings local.Settings) (<-chan error, error) {
	if err := endOther(ctx, running); err != nil {
		return nil, err
	}
	return a.launch(ctx, settings, false)
}

// unlike says why a running switch has to be replaced; "" if it need not.
func (a *Agent) unlike(info *door.SwitchInfo, settings *local.Settings) string {
	want, err := json.Marshal(settings)
	switch {
	case err != nil:
		return err.Error()
	case a.config.NewSwitch:
		return "a new switch was asked for"
	case info.Release != a.config.Release:
		return fmt.Sprintf("its release is %s, and the agent's is %s", info.Release, a.config.Release)
	case string(info.Settings) != string(want):
		return "the configuration has other settings"
	}
	return ""
}

// launch starts the switch. With over it takes over from the running one.
func (a *Agent) launch(ctx context.Context, settings local.Settings, over bool) (<-chan error, error) {
	c := a.config
	l := switchd.Launch{UID: switchd.ConfinedUID, Into: a.waiting}
	if err := l.Level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.SwitchDir(), 0o700); err != nil {
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

// runChild reaps a switch that this process launched before it executed itself again. Otherwise
// the exited switch would stay a zombie.
func (a *Agent) runChild(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Wait() // fails if it is not a child process, which does not matter
	}
}

// lentTime is how long lent descriptors keep a port alive after its switch. Until then the
// kernel forwards the connections that were offloaded to it.
const lentTime = time.Second

// revive launches the switch again after it ended, and opens its ports. The switch reads
// entries and connections from its files, so packets pass before the agent has asked it
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
		a.log.Warn("multicast routes are lost; the agent makes new ones", "error", err)
	}
	return nil
}

// EndSwitch ends the switch that a killed agent left. socket is the agent's. EndSwitch returns
// nil if there is none.
func EndSwitch(ctx context.Context, socket string) error {
	return endOther(ctx, door.Dial(config.SwitchSocket(socket)))
}

// endOther ends a switch that has no controller. It first waits, at most leaveTime, for the
// switch to see that a killed agent is gone.
func endOther(ctx context.Context, sw *door.Client) error {
	for end := time.Now().Add(leaveTime); time.Now().Before(end); time.Sleep(switchRetry) {
		if info, err := sw.Info(ctx); err != nil || info.Controller == "" {
			break
		}
	}
	return sw.End(ctx)
}

// endSwitch closes the ports of the agent's switch, removes what they leave on the Node, and
// ends the switch.
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
