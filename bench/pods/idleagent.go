package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/lab"
	"sigs.k8s.io/yaml"
)

// openIdleAgent starts an agent without traffic.
func openIdleAgent(ctx context.Context, r *rig.Rig) (*rig.Side, error) {
	n, links, err := newIdleNode()
	if err != nil {
		return nil, err
	}
	var a *idleAgent
	err = testbed.Within(n.NS)(func() error { return testbed.SetLinkAddress("lo", lab.TwoNodes().Nodes[0].Address.V4.String()) }) // for the tunnel
	if err == nil {
		a, err = startIdleAgent(ctx, r.Binary, testbed.Within(n.NS), links)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("agent: %w", err), n.Close())
	}
	end := func() error { return errors.Join(a.close(), n.Close()) }
	info, err := door.Dial(config.SwitchSocket(filepath.Join(a.dir, "socket"))).Info(ctx)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return idleSide(r, "antrail", []string{strconv.Itoa(a.cmd.Process.Pid), strconv.Itoa(info.PID)}, end), nil
}

// agentTimeout is how long an agent may take to be ready, or to end.
const agentTimeout = 20 * time.Second

// idleAgent is an agent without a lab, with a single entry.
type idleAgent struct {
	dir string
	cmd *exec.Cmd
}

// startIdleAgent starts an agent with ports on links and waits until it is ready. within runs a function in
// its Node. If binary is empty, it is the running one.
func startIdleAgent(ctx context.Context, binary string, within func(func() error) error, links []string) (*idleAgent, error) {
	binary = cmp.Or(binary, "/proc/self/exe")
	dir, err := os.MkdirTemp("", "antrail-bench")
	if err != nil {
		return nil, err
	}
	a := &idleAgent{dir: dir, cmd: exec.Command(binary, "agent", "--config", filepath.Join(dir, "agent.yaml"))}
	var log strings.Builder
	a.cmd.Stdout, a.cmd.Stderr = &log, &log
	if err := errors.Join(a.writeFiles(links), within(a.cmd.Start)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	client := api.NewClient(filepath.Join(dir, "socket"))
	for deadline := time.Now().Add(agentTimeout); client.Ready(ctx) != nil; sched.Wait(ctx, 10*time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			err := errors.Join(a.close(), ctx.Err())
			return nil, fmt.Errorf("it is not ready: %w\n%s", err, log.String())
		}
	}
	return a, nil
}

// writeFiles writes the agent's configuration and entries.
func (a *idleAgent) writeFiles(links []string) error {
	plan := lab.TwoNodes()
	plan.Nodes[0].Pods = nil
	c := plan.Config(&plan.Nodes[0], a.dir, nil)
	c.Socket, c.Flows = filepath.Join(a.dir, "socket"), "entries"
	for i, name := range links {
		c.Ports = append(c.Ports, config.Port{Name: name, OFPort: uint32(10 + i), Driver: config.DriverAFPacket})
	}
	text, err := yaml.Marshal(c)
	return errors.Join(err,
		os.WriteFile(filepath.Join(a.dir, "agent.yaml"), text, 0o600),
		os.WriteFile(filepath.Join(a.dir, "entries"), []byte("table=0 actions=NORMAL\n"), 0o600))
}

// close ends the agent and removes its directory. It kills an agent that does not end.
func (a *idleAgent) close() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	force := time.AfterFunc(agentTimeout, func() { _ = a.cmd.Process.Kill() })
	err := sched.Reap(a.cmd)
	force.Stop()
	return errors.Join(err, os.RemoveAll(a.dir))
}
