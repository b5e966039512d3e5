package ovs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/antrail/antrail/flow"
)

// SetFlow replaces all flow entries of the bridge by one.
func (s *Switch) SetFlow(ctx context.Context, entry string) error {
	if err := s.runProgram(ctx, "ovs-ofctl", "del-flows", s.Path("br0.mgmt")); err != nil {
		return err
	}
	return s.runProgram(ctx, "ovs-ofctl", "add-flow", s.Path("br0.mgmt"), entry)
}

// mostPorts is higher than every port number of the examples.
const mostPorts = 64

const (
	// System is the kind of ports on packet sockets.
	System = "system"
	// AFXDP is the kind of ports on AF_XDP sockets.
	AFXDP = "afxdp"
)

// Port is a link that is a port of the switch, and its kind: the type of its interface.
type Port struct{ Link, Kind string }

// Install adds the ports that a program names, as AddPorts does, and loads the program.
func (s *Switch) Install(ctx context.Context, p *flow.Program, links map[string]Port, further ...string) error {
	return errors.Join(s.AddPorts(ctx, p, links, further...), s.Load(ctx, p))
}

// AddPorts adds the ports that a program names, with the program's numbers. links has the links, by port
// name. A port without a link is an internal one. Further arguments of ovs-vsctl are part of the
// same change.
func (s *Switch) AddPorts(ctx context.Context, p *flow.Program, links map[string]Port, further ...string) error {
	var add []string
	for no := range uint32(mostPorts) {
		name := p.Names.Port(no)
		if name == "" {
			continue
		}
		port, ok := links[name]
		if !ok {
			port = Port{Link: name, Kind: "internal"}
		}
		add = append(add, "--", "add-port", "br0", port.Link, "--", "set", "interface", port.Link, "type="+port.Kind, fmt.Sprintf("ofport_request=%d", no))
	}
	return s.Vsctl(ctx, append(add, further...)...)
}

// Load replaces the bridge's entries, groups and meters by those of a program.
func (s *Switch) Load(ctx context.Context, p *flow.Program) error {
	var groups, flows strings.Builder
	for _, g := range p.Groups {
		fmt.Fprintln(&groups, g.Text(nil))
	}
	for _, e := range p.Entries {
		fmt.Fprintln(&flows, strings.TrimSpace(e.Text(flow.Format{})))
	}
	for _, command := range []string{"del-flows", "del-groups", "del-meters"} {
		if err := s.Ofctl(ctx, command); err != nil {
			return err
		}
	}
	for _, m := range p.Meters {
		if err := s.Ofctl(ctx, "add-meter", meterText(m)); err != nil {
			return err
		}
	}
	return errors.Join(s.loadFile(ctx, groups.String(), "add-groups"), s.loadFile(ctx, flows.String(), "--bundle", "add-flows"))
}

// meterText writes a meter in the syntax of ovs-ofctl add-meter.
func meterText(m *flow.Meter) string {
	text := fmt.Sprintf("meter=%d,kbps", m.ID)
	if m.PktPS {
		text = fmt.Sprintf("meter=%d,pktps", m.ID)
	}
	if m.Burst {
		text += ",burst"
	}
	for _, b := range m.Bands {
		text += fmt.Sprintf(",band=type=drop,rate=%d,burst_size=%d", b.Rate, b.BurstSize)
	}
	return text
}

// loadFile gives a text to the bridge by a command of ovs-ofctl that reads a file.
func (s *Switch) loadFile(ctx context.Context, text string, command ...string) error {
	file := s.Path("load")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return s.runProgram(ctx, "ovs-ofctl", append(append([]string{"-OOpenFlow15"}, command...), s.Path("br0.mgmt"), file)...)
}

// Ofctl gives the bridge a command of ovs-ofctl, in OpenFlow 1.5.
func (s *Switch) Ofctl(ctx context.Context, command string, args ...string) error {
	return s.runProgram(ctx, "ovs-ofctl", append([]string{"-OOpenFlow15", command, s.Path("br0.mgmt")}, args...)...)
}
