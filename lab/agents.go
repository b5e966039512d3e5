package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/tables"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// How long agents may take before it is an error, also on a slow machine.
const (
	startTime = 60 * time.Second
	stopTime  = 10 * time.Second
)

// startAgents starts the agent of each Node and waits until all are ready.
func (l *Lab) startAgents(ctx context.Context, o *Options) error {
	pipeline, err := l.pipeline(o)
	if err != nil {
		return err
	}
	binary, err := program(o.Binary)
	if err != nil {
		return err
	}
	ended := make(map[string]<-chan error)
	for i := range l.Topology.Nodes {
		n := &l.Topology.Nodes[i]
		err := l.writeConfig(n, func(c *config.Config) error {
			c.Conntrack, c.Offload, c.KeepAwake, c.Tunnel.Driver, c.Page = o.Conntrack, o.Offload, o.KeepAwake, o.TunnelDriver, o.Page
			if o.Walk {
				c.ConnectionCache = new(bool)
			}
			return pipeline(c)
		})
		if err != nil {
			return err
		}
		if ended[n.Name], err = l.startAgent(n.Name, binary); err != nil {
			return fmt.Errorf("start the agent of %s: %w", n.Name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, n := range l.Topology.Nodes {
		if err := l.waitReady(ctx, n.Name, ended[n.Name]); err != nil {
			return err
		}
		if err := l.makeLoops(n.Name); err != nil {
			return err
		}
	}
	return nil
}

// program is the path of a binary; "" means the running one.
func program(binary string) (string, error) {
	if binary == "" {
		return os.Executable()
	}
	return binary, nil
}

// pipeline returns a function that sets the source of the pipeline in an agent's
// configuration. The built-in objects are copied into the lab's directory, where a user can
// change them.
func (l *Lab) pipeline(o *Options) (func(*config.Config) error, error) {
	if o.FlowsDir != "" {
		return func(c *config.Config) error { return l.copyFlows(c, o.FlowsDir) }, nil
	}
	manifests := filepath.Join(l.Dir, "manifests")
	if o.Manifests == "" {
		files, err := fs.Sub(examples.FS, "web-app")
		if err == nil {
			err = os.CopyFS(manifests, files)
		}
		if err == nil {
			err = l.setEncapMode(manifests)
		}
		if err != nil {
			return nil, err
		}
	} else {
		var err error
		if manifests, err = filepath.Abs(o.Manifests); err != nil {
			return nil, err
		}
	}
	return func(c *config.Config) error {
		c.Manifests = manifests
		for i := range c.Ports {
			c.Ports[i].OFPort = 0 // from the NodeConfig
		}
		return nil
	}, nil
}

// setEncapMode sets trafficEncapMode in the NodeConfigs of the built-in objects.
func (l *Lab) setEncapMode(dir string) error {
	mode := l.Topology.Encap
	if mode == tables.Encap {
		return nil
	}
	for _, n := range l.Topology.Nodes {
		file := filepath.Join(dir, n.Name+".yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var config map[string]any
		if err := yaml.Unmarshal(text, &config); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		spec := config["spec"].(map[string]any)
		spec["trafficEncapMode"], spec["transportCIDRs"] = mode.String(), l.Topology.Subnets()
		if mode == tables.NoEncap {
			delete(spec, "tunnel")
		}
		if text, err = yaml.Marshal(config); err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFlows copies a Node's flow files into the lab's directory.
func (l *Lab) copyFlows(c *config.Config, dir string) error {
	c.Flows, c.Groups, c.Meters = c.NodeName+".flows", c.NodeName+".groups", c.NodeName+".meters"
	for _, name := range []string{c.Flows, c.Groups, c.Meters} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(l.Dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeConfig writes a Node's configuration into the lab's directory.
func (l *Lab) writeConfig(n *Node, complete func(*config.Config) error) error {
	c := l.Topology.Config(n, l.Dir, l.link)
	for i := range c.Ports {
		c.Ports[i].Driver = l.State.Driver
	}
	if err := complete(c); err != nil {
		return err
	}
	b, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(l.configFile(n.Name), b, 0o600)
}

func (l *Lab) configFile(node string) string { return filepath.Join(l.Dir, node+".yaml") }

// startAgent starts an agent process in its Node's namespace. A new process belongs to the
// namespace of the thread that starts it. The agent is a session of its own, so that it
// outlives `lab up`, and the terminal does not end it. The channel receives the process's
// exit.
func (l *Lab) startAgent(node, binary string, flags ...string) (<-chan error, error) {
	log, err := os.OpenFile(l.Log(node), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, append([]string{"agent", "--config", l.configFile(node)}, flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := keepDescriptors(); err != nil {
		return nil, err
	}
	if err := l.namespace(node).Do(cmd.Start); err != nil {
		return nil, err
	}
	p, ok := processOf(cmd.Process.Pid)
	if ok {
		l.State.Agents = append(l.State.Agents, AgentState{node, p})
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, l.save()
}

// waitReady asks an agent until it is ready. If it ends first, the end of its log is in the
// error.
func (l *Lab) waitReady(ctx context.Context, node string, ended <-chan error) error {
	client := api.NewClient(l.Socket(node))
	for {
		err := client.Ready(ctx)
		if err == nil {
			l.say("agent of %s is ready", node)
			return nil
		}
		select {
		case how := <-ended:
			return fmt.Errorf("the agent of %s ended (%v):\n%s", node, how, tail(l.Log(node)))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("interrupted before the agent of %s was ready", node)
			}
			return fmt.Errorf("the agent of %s is not ready: %w:\n%s", node, errors.Join(ctx.Err(), err), tail(l.Log(node)))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// StopAgent ends a Node's agent by SIGTERM and waits until it is gone. If the agent has to
// be killed, that is an error.
func (l *Lab) StopAgent(node string) error {
	for _, a := range l.State.Agents {
		if a.Node == node {
			return end([]Process{a.Process}, stopTime)
		}
	}
	return fmt.Errorf("lab %s has no agent of %q", l.State.ID, node)
}

// KillAgent ends a Node's agent by SIGKILL and waits until it is gone.
func (l *Lab) KillAgent(node string) error {
	for _, a := range l.State.Agents {
		if a.Node != node {
			continue
		}
		signal([]Process{a.Process}, unix.SIGKILL)
		if left := waitGone([]Process{a.Process}, stopTime); len(left) > 0 {
			return fmt.Errorf("processes %v still run after SIGKILL", left)
		}
		return nil
	}
	return fmt.Errorf("lab %s has no agent of %q", l.State.ID, node)
}

// RestartAgent stops a Node's agent if it runs and starts a new one.
func (l *Lab) RestartAgent(ctx context.Context, node, binary string) error {
	binary, err := program(binary)
	if err != nil {
		return err
	}
	if err := l.StopAgent(node); err != nil {
		return err
	}
	l.State.Agents = slices.DeleteFunc(l.State.Agents, func(a AgentState) bool { return a.Node == node })
	ended, err := l.startAgent(node, binary)
	if err != nil {
		return fmt.Errorf("start the agent of %s: %w", node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := l.waitReady(ctx, node, ended); err != nil {
		return err
	}
	return l.makeLoops(node)
}

// ReplaceAgent starts an agent that takes over from the running one. It waits until that
// one has ended and the new one is ready.
func (l *Lab) ReplaceAgent(ctx context.Context, node, binary string, flags ...string) error {
	binary, err := program(binary)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(l.State.Agents, func(a AgentState) bool { return a.Node == node })
	if at < 0 {
		return fmt.Errorf("lab %s has no agent of %q", l.State.ID, node)
	}
	before := l.State.Agents[at]
	ended, err := l.startAgent(node, binary, append(flags, "--take-over")...)
	if err != nil {
		return fmt.Errorf("start the agent of %s: %w", node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for before.Process.alive() {
		select {
		case how := <-ended:
			l.State.Agents = l.State.Agents[:len(l.State.Agents)-1]
			return errors.Join(fmt.Errorf("the agent of %s did not take over (%v):\n%s", node, how, tail(l.Log(node))), l.save())
		case <-ctx.Done():
			return fmt.Errorf("the agent of %s has not taken over: %w:\n%s", node, ctx.Err(), tail(l.Log(node)))
		case <-time.After(5 * time.Millisecond):
		}
	}
	l.State.Agents = slices.Delete(l.State.Agents, at, at+1)
	if err := l.save(); err != nil {
		return err
	}
	return l.waitReady(ctx, node, ended)
}

// adopt replaces each ended agent in the state by the process that answers at its socket,
// if an operator has started one by hand.
func (l *Lab) adopt() {
	for i := range l.State.Agents {
		a := &l.State.Agents[i]
		if a.Process.alive() {
			continue
		}
		pid, err := agent.PID(l.Socket(a.Node))
		if p, ok := processOf(pid); err == nil && ok {
			a.Process = p
		}
	}
}

// stopAgents ends the recorded agent processes that still run.
func (l *Lab) stopAgents() error {
	var all []Process
	for _, a := range l.State.Agents {
		all = append(all, a.Process)
	}
	return end(all, stopTime)
}
