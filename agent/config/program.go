package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/programs"
)

// Roles of ports in a program.
const (
	RolePod    = "pod"
	RoleUplink = "uplink"
	RoleBridge = "bridge"
)

// ProgramNode is the Node of the configuration, in the types of programs.
func (c *Config) ProgramNode() *layout.Node {
	n := &layout.Node{
		Gateway: layout.Port{Name: c.Gateway.Name, No: c.Gateway.OFPort, MAC: c.Gateway.MAC},
		NodeIP:  c.Tunnel.LocalAddress,
	}
	if len(c.Peers) > 0 {
		n.Tunnel = layout.Port{Name: c.Tunnel.Name, No: c.Tunnel.OFPort}
	}
	for _, p := range c.PodCIDRs {
		if p.Addr().Is4() {
			n.PodCIDR = p
		}
	}
	for _, a := range c.Gateway.Addresses {
		if a.Addr().Is4() {
			n.GatewayIP = a.Addr()
		}
	}
	for _, p := range c.Peers {
		n.Peers = append(n.Peers, layout.Peer{NodeIPs: p.NodeIPs, PodCIDRs: p.PodCIDRs, GatewayIPs: p.Gateways})
	}
	for _, s := range c.Services {
		n.Services = append(n.Services, layout.Service{Proto: protocols[s.Protocol], Addr: s.Address, Endpoint: s.Endpoint})
	}
	for _, p := range c.Policies {
		n.Policies = append(n.Policies, layout.Policy{Pod: p.Pod, Ingress: rulesOf(p.Ingress), Egress: rulesOf(p.Egress)})
	}
	if c.Uplink != nil {
		n.Router = c.Uplink.Router
	}
	c.programPorts(n, c.Program)
	return n
}

// ProgramBeside is another program of the switch, with its Node: ports, and nothing else.
type ProgramBeside struct {
	Name string
	Node *layout.Node
}

// ProgramsBeside are the programs that ports name, in the order of the ports.
func (c *Config) ProgramsBeside() (all []ProgramBeside) {
	for i := range c.Ports {
		name := c.Ports[i].programOf(c)
		if name == c.Program || slices.ContainsFunc(all, func(b ProgramBeside) bool { return b.Name == name }) {
			continue
		}
		b := ProgramBeside{name, &layout.Node{}}
		c.programPorts(b.Node, name)
		all = append(all, b)
	}
	return all
}

// PortsBeside are the ports of programs beside the objects' pipeline.
func (c *Config) PortsBeside() (all []Port) {
	for _, p := range c.Ports {
		if c.Program == "" && p.Program != "" {
			all = append(all, p)
		}
	}
	return all
}

// checkBeside reports programs that cannot run beside the objects' pipeline.
func (c *Config) checkBeside(f *faults) {
	var parts []layout.Part
	for _, b := range c.ProgramsBeside() {
		program, err := programs.Named(b.Name)
		if err != nil {
			f.check(false, "program: %v", err)
			return
		}
		parts = append(parts, layout.Part{Program: program, Node: b.Node})
	}
	_, _, err := programs.Beside(0, flow.NewNames(), parts...)
	f.check(err == nil, "program: %v", err)
}

// checkBesidePort reports what a port of a program beside objects lacks.
func (c *Config) checkBesidePort(f *faults, who string, p *Port) {
	f.check(c.FromObjects() && !c.External(), "%s.program: only with program, manifests or kubernetes, on a Node with pods", who)
	f.check(p.Role == "" || p.Role == RolePod, "%s.role: %q; want pod: beside objects a program has only pods' ports", who, p.Role)
	f.check(p.Pod == "", "%s.pod: a port of a program has no Pod", who)
	f.check(p.MAC != MAC{} && p.Address.Is4(), "%s.mac and address: missing, or not an IPv4 address", who)
}

// programOf is the name of the port's program.
func (p *Port) programOf(c *Config) string { return cmp.Or(p.Program, c.Program) }

// programPorts gives a Node the ports of a program by their roles.
func (c *Config) programPorts(n *layout.Node, program string) {
	for i := range c.Ports {
		p := &c.Ports[i]
		if p.programOf(c) != program {
			continue
		}
		port := layout.Port{Name: p.Name, No: p.OFPort, MAC: p.MAC}
		switch p.Role {
		case RoleUplink:
			n.Uplink = port
		case RoleBridge:
			n.Bridge = port
		default:
			n.Pods = append(n.Pods, layout.NewPod(port, p.Address))
		}
	}
}

// checkProgram reports an unknown program, and a program whose Node lacks something.
func (c *Config) checkProgram(f *faults) {
	f.check(c.Program != "" || len(c.Services) == 0, "services: only with program")
	f.check(c.Program != "" || len(c.Policies) == 0, "policies: only with program")
	if c.Program == "" {
		c.checkBeside(f)
		return
	}
	sound := len(*f)
	f.checkServices(c.Services)
	f.checkPolicies(c.Policies)
	if len(*f) > sound {
		return // the program would not accept them
	}
	f.check(!c.FromObjects() && !c.fromFiles(), "program: not together with flows, groups, meters, manifests and kubernetes")
	roles := map[string]string{}
	for i, p := range c.Ports {
		who := fmt.Sprintf("ports[%d]", i)
		switch p.Role {
		case "", RolePod:
			f.check(p.MAC != MAC{}, "%s.mac: missing", who)
			f.check(p.Address.Is4(), "%s.address: missing, or not an IPv4 address", who)
		case RoleUplink, RoleBridge:
			claim(f, roles, p.Role+" of "+p.programOf(c), who, "role")
		default:
			f.check(false, "%s.role: %q is none of pod, uplink and bridge", who, p.Role)
		}
	}
	var parts []layout.Part
	for _, b := range append([]ProgramBeside{{c.Program, c.ProgramNode()}}, c.ProgramsBeside()...) {
		program, err := programs.Named(b.Name)
		if err != nil {
			f.check(false, "program: %v", err)
			return
		}
		f.check(b.Name != c.Program || len(c.Policies) == 0 || program.HasPolicies, "policies: program %s has none", c.Program)
		parts = append(parts, layout.Part{Program: program, Node: b.Node})
	}
	_, _, err := layout.Together(parts...)
	f.check(err == nil, "program: %v", err)
}
