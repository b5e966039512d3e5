package agent

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/cni/node"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/tables/vppl3"
)

// programPods are the pods that the CNI plugin attaches on a Node that runs a program. Each is
// a pod of the program, as if the configuration had its port: its entries are rebuilt with it.
// Pods that are attached by layer 3 belong to program vppl3, alone or beside another program.
// programPods implements node.Switch.
type programPods struct {
	*pluginCalls
	config *config.Config
	log    *slog.Logger

	mu       sync.Mutex
	pipeline *pipeline.Pipeline // nil until the program is loaded
	setPorts func([]config.Port)
	plugged  []node.Port
	lacks    error // why the switch lacks the pods
}

// openProgramPods continues with the pods that a previous agent attached. Programs are IPv4
// only.
func (a *Agent) openProgramPods() (err error) {
	c := a.config
	p := &programPods{pluginCalls: newPluginCalls(), config: c, log: a.log}
	cidrs := slices.DeleteFunc(slices.Clone(c.PodCIDRs), func(r netip.Prefix) bool { return !r.Addr().Is4() })
	gateways := slices.DeleteFunc(addrsOf(c.Gateway.Addresses), netip.Addr.Is6)
	if len(cidrs) == 0 || len(gateways) == 0 {
		return nil // no IPv4 address for pods
	}
	p.status = a.cniStatus
	if p.node, err = node.New(pluginNode(c, cidrs, gateways, p, a.log)); err == nil {
		a.cni, a.programPods = p.pluginCalls, p
	}
	return err
}

// follow makes the program follow the pods from now on.
func (p *programPods) follow(a *Agent) {
	if p == nil {
		return
	}
	p.opened = a.Pods.Has
	a.Pods.Opened, a.Pods.Lost = p.changed.raise, p.tellLost
	p.mu.Lock()
	p.pipeline, p.setPorts = a.Pipeline, a.Pods.Set
	p.mu.Unlock()
	p.open()
}

// withPods is the configuration with a port for each pod.
func (p *programPods) withPods(c *config.Config) *config.Config {
	if p == nil {
		return c
	}
	with := *c
	with.Ports = slices.Clone(c.Ports)
	for _, pod := range p.plugged {
		port := config.Port{Name: pod.Name, Link: pod.Name, OFPort: pod.OFPort, Driver: c.PodDriver, MAC: pod.MAC, Address: pod.IPs[0]}
		if pod.Routed {
			port.Program = vppl3.Program.Name
		}
		with.Ports = append(with.Ports, port)
	}
	return &with
}

// Plug implements node.Switch.
func (p *programPods) Plug(all []node.Port) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gone := &door.Purge{}
	for _, had := range p.plugged {
		if !slices.ContainsFunc(all, func(o node.Port) bool { return slices.Equal(o.IPs, had.IPs) }) {
			gone.Addrs = append(gone.Addrs, had.IPs...)
		}
	}
	p.plugged = all
	if p.pipeline == nil {
		return
	}
	with := p.withPods(p.config)
	if p.lacks = p.pipeline.Reload(pipeline.ProgramOf(with)); p.lacks != nil {
		p.log.Error("the program refuses the attached pods", "error", p.lacks)
	} else {
		p.setPorts(with.Ports)
		p.pipeline.Connections.Purge(gone)
	}
	p.changed.raise()
}

// InForce implements node.Switch.
func (p *programPods) InForce(port node.Port) error {
	p.mu.Lock()
	lacks := p.lacks
	p.mu.Unlock()
	switch {
	case errors.As(lacks, new(*door.AwayError)):
		return lacks
	case lacks != nil:
		return cni.Errorf(cni.CodePodUnsuited, "the program refuses the pod", lacks)
	case !p.opened(port.Name, port.OFPort):
		return errors.New("its link is not open yet")
	}
	return nil
}

// Pod implements node.Switch. There are no objects to check the pod against.
func (p *programPods) Pod(cni.Pod) error { return nil }

// Attach implements node.Switch.
func (p *programPods) Attach(cni.Pod) string {
	if p.config.Program == vppl3.Program.Name {
		return cni.AttachRouted
	}
	return "" // the plugin's configuration decides
}

// Taken implements node.Switch.
func (p *programPods) Taken(cni.Pod) node.Taken {
	c := p.config
	t := node.Taken{Addrs: map[netip.Addr]bool{}, Ports: map[uint32]bool{c.Gateway.OFPort: true, c.Tunnel.OFPort: true}}
	for _, port := range c.Ports {
		t.Addrs[port.Address], t.Ports[port.OFPort] = true, true
	}
	return t
}

var _ node.Switch = (*programPods)(nil)
