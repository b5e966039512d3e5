package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/ports"
)

// openOVSPods is client-a and web-a of the lab's first Node on an Open vSwitch
// that has the Node's entries, with ports of a kind: "system" (packet sockets)
// or "afxdp".
func openOVSPods(ctx context.Context, kind string) (*podPair, error) {
	name := ovsPodsName(kind)
	if why := ovsMissing(); why != nil {
		return nil, missingError{name, why}
	}
	pods := lab.TwoNodes().Nodes[0].Pods[:2]
	n, err := newNode(len(pods))
	if err != nil {
		return nil, err
	}
	for i, pod := range pods {
		err = errors.Join(err, n.addPod(n.pods[i], pod.Name, pod.Address.V4.String()+"/24", net.HardwareAddr(pod.MAC[:])))
		if err == nil && kind == kindXDP {
			err = within(n.pods[i])(func() error { return ports.DisableTxChecksum("eth0") })
		}
	}
	var s *ovsSwitch
	var stay chan struct{}
	if err == nil {
		s, stay, err = n.startOVS(ctx, settingsOf[kind]...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), n.close())
	}
	pair := n.pair(name, n.pods[0], n.pods[1])
	pair.address = net.JoinHostPort(pods[1].Address.V4.String(), "80")
	pair.switches = []string{s.pid()}
	pair.close = func() error { defer close(stay); return errors.Join(s.close(), n.close()) }
	err = s.connectPods(ctx, pods, kind)
	if err == nil && kind == kindXDP {
		pair.rests = s.rests
		err = s.rests(true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), pair.close())
	}
	return pair, nil
}

// ovsPodsName is the name of Open vSwitch with ports of a kind as a contender.
func ovsPodsName(kind string) string {
	return ovsVersion() + strings.TrimSuffix(" "+kind, " "+kindSystem)
}

// The kinds of Open vSwitch's ports.
const kindSystem, kindXDP = "system", "afxdp"

// settingsOf is what a switch with ports of a kind is started with: segments
// stay whole on packet sockets; AF_XDP has none.
var settingsOf = map[string][]string{kindSystem: {"userspace-tso-enable=true"}}

// connectPods loads the Node's entries and makes the pods' links, which have
// their names, ports of a kind.
func (s *ovsSwitch) connectPods(ctx context.Context, pods []lab.Pod, kind string) error {
	program, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	links := make(map[string]ovsPort)
	for _, pod := range pods {
		links[pod.Name] = ovsPort{pod.Name, kind}
	}
	return s.install(ctx, program, links)
}

// rests stops the switch, or has it go on: its threads that poll AF_XDP ports
// never sleep, and would take a processor from whoever is measured meanwhile.
func (s *ovsSwitch) rests(yes bool) error {
	signal := syscall.SIGCONT
	if yes {
		signal = syscall.SIGSTOP
	}
	return s.daemons[len(s.daemons)-1].Process.Signal(signal)
}

// startOVS starts a switch in the Node's namespace. Its daemons end with the
// thread that started them, which stays until stay is closed.
func (n *node) startOVS(ctx context.Context, settings ...string) (s *ovsSwitch, stay chan struct{}, err error) {
	stay = make(chan struct{})
	started := make(chan error, 2)
	go func() {
		started <- within(n.ns)(func() error {
			var failed error
			s, failed = startOVS(ctx, settings...)
			started <- failed
			if failed == nil {
				<-stay
			}
			return nil
		})
	}()
	err = <-started
	return s, stay, err
}

// mostPorts is above every port number of the examples.
const mostPorts = 64

// ovsPort is a link as a port of the switch.
type ovsPort struct{ link, kind string }

// install makes the ports that a program names and loads the program. Ports
// without a link get one that leads nowhere; further arguments of ovs-vsctl are
// part of the same change.
func (s *ovsSwitch) install(ctx context.Context, p *flow.Program, links map[string]ovsPort, further ...string) error {
	return errors.Join(s.addPorts(ctx, p, links, further...), s.load(ctx, p))
}

// addPorts is install without the program's entries.
func (s *ovsSwitch) addPorts(ctx context.Context, p *flow.Program, links map[string]ovsPort, further ...string) error {
	var add []string
	for no := range uint32(mostPorts) {
		name := p.Names.Port(no)
		if name == "" {
			continue
		}
		port, ok := links[name]
		if !ok {
			port = ovsPort{name, "internal"}
		}
		add = append(add, "--", "add-port", "br0", port.link, "--", "set", "interface", port.link, "type="+port.kind, fmt.Sprintf("ofport_request=%d", no))
	}
	return s.vsctl(ctx, append(add, further...)...)
}

// load replaces what the bridge has by a program.
func (s *ovsSwitch) load(ctx context.Context, p *flow.Program) error {
	var groups, flows strings.Builder
	for _, g := range p.Groups {
		fmt.Fprintln(&groups, g.Text(nil))
	}
	for _, e := range p.Entries {
		fmt.Fprintln(&flows, strings.TrimSpace(e.Text(flow.Format{})))
	}
	for _, command := range []string{"del-flows", "del-groups", "del-meters"} {
		if err := s.ofctl(ctx, command); err != nil {
			return err
		}
	}
	for _, m := range p.Meters {
		if err := s.ofctl(ctx, "add-meter", meterText(m)); err != nil {
			return err
		}
	}
	return errors.Join(s.loadFile(ctx, groups.String(), "add-groups"), s.loadFile(ctx, flows.String(), "--bundle", "add-flows"))
}

// meterText is a meter as ovs-ofctl add-meter takes it.
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

// loadFile gives the bridge what a text says, by a command of ovs-ofctl.
func (s *ovsSwitch) loadFile(ctx context.Context, text string, command ...string) error {
	file := s.path("load")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	_, err := s.run(ctx, "ovs-ofctl", append(append([]string{"-OOpenFlow15"}, command...), s.path("br0.mgmt"), file)...)
	return err
}

// ofctl gives the bridge a command in OpenFlow 1.5.
func (s *ovsSwitch) ofctl(ctx context.Context, command string, args ...string) error {
	_, err := s.run(ctx, "ovs-ofctl", append([]string{"-OOpenFlow15", command, s.path("br0.mgmt")}, args...)...)
	return err
}
