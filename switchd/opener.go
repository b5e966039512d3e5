package switchd

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/ports/uplink"
	"github.com/antrail/antrail/ports/ways"
	"github.com/antrail/antrail/switchd/local"
	"github.com/vishvananda/netlink"
)

// podRing is the number of slots in a pod port's rings. They hold the frames of a TCP window of a
// megabyte while the worker is busy elsewhere.
const podRing = 1024

// Opener opens ports by the names of links, in the network namespace of the calling
// thread. It needs privilege: CAP_NET_ADMIN and CAP_NET_RAW, and CAP_BPF for AF_XDP.
type Opener struct {
	// Offload is for packet sockets of pods; nil for none.
	Offload *Offload
	// Owner is the owner of taps (tap.Options.Owner).
	Owner string
	// Cards are AF_XDP's options for a card: a link that is not a veth, VLAN or bond. Cards.Mode
	// is zero copy, or the zero value.
	Cards afxdp.Options
	// From has ports that the predecessor has handed over; nil for none.
	From *Inheritance
	// Given is set if one process opens ports for another that has no privilege. Without From, this
	// process opens them. With From, the predecessor has opened them, and keeps the programs.
	Given bool
	// Killed is set if the predecessor may have been killed.
	Killed bool
	// Why is the reason for the driver of a port that the predecessor has opened.
	Why string
	Log *slog.Logger

	memory         *afxdp.Memory // of AF_XDP ports
	zeroCopyMemory *afxdp.Memory // of cards with zero copy
}

// CardsOf are the options of a port on a card.
func CardsOf(c local.AFXDP) afxdp.Options {
	o := afxdp.Options{BusyPoll: afxdp.BusyPoll{Time: time.Duration(c.BusyPoll), Budget: c.BusyPollBudget}}
	if c.ZeroCopy {
		o.Mode = afxdp.ZeroCopy
	}
	return o
}

// Room makes the memory of AF_XDP ports, initially for a number of ports. It is called once,
// before the first port is opened.
func (o *Opener) Room(ports int) {
	o.memory, o.zeroCopyMemory = afxdp.NewMemory(podRing, ports), afxdp.NewMemory(podRing, 1)
}

// Sweep frees the memory of given ports that are closed.
func (o *Opener) Sweep() {
	if o.memory != nil {
		o.memory.Sweep()
		o.zeroCopyMemory.Sweep()
	}
}

// Close frees the memory. Close the ports first.
func (o *Opener) Close() error {
	if o == nil || o.memory == nil {
		return nil
	}
	return errors.Join(o.memory.Close(), o.zeroCopyMemory.Close())
}

// Link opens a port on an existing link. driver is auto, afxdp or afpacket.
func (o *Opener) Link(link, driver string) (ports.Heritable, error) {
	why := driver + " was asked for"
	if o.Given && o.From != nil {
		why = o.Why
	}
	switch driver {
	case door.DriverAFXDP:
		return o.openXDP(link, why)
	case door.DriverAFPacket:
		return o.openPacketSocket(link, why)
	case door.DriverAuto:
		return o.openAuto(link)
	}
	return nil, fmt.Errorf("%s: there is no driver %q; there are auto, afpacket and afxdp", link, driver)
}

// openAuto chooses the driver. A veth never falls back to AF_XDP, where every segment of a Pod
// travels alone. The caller must ask for that.
func (o *Opener) openAuto(name string) (ports.Heritable, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	if link.Type() == "veth" {
		return o.openPacketSocket(name, "auto: on a veth a packet socket keeps large segments whole")
	}
	p, err := o.openXDP(name, "auto: no veth")
	if err == nil || errors.Is(err, ErrDeclined) {
		return p, err
	}
	p, second := o.openPacketSocket(name, fmt.Sprintf("auto: AF_XDP is not possible: %v", err))
	if second != nil {
		return nil, fmt.Errorf("%w; %w", err, second)
	}
	return p, nil
}

// openXDP opens an AF_XDP port.
func (o *Opener) openXDP(link, why string) (ports.Heritable, error) {
	options, memory, err := o.xdpOptions(link)
	if err != nil {
		return nil, err
	}
	options.Interface, options.Why, options.Attached, options.Killed = link, why, o.Given, o.Killed
	fds := o.From.TakeDescriptors(door.DriverAFXDP, link)
	open := memory.Open
	if o.Given {
		open = memory.OpenToGive
	}
	p, err := adoptOr(fds, options, memory.Adopt, open)
	switch {
	case err != nil && fds != nil:
		return nil, o.From.decline(link, err)
	case err != nil:
		return nil, err // p would be a non-nil Port
	case fds != nil:
		o.From.addXDPPort(p)
	}
	return p, nil
}

// xdpOptions has AF_XDP's options for a link, and the memory of its port. Cards with zero copy have
// their own memory.
func (o *Opener) xdpOptions(link string) (options afxdp.Options, m *afxdp.Memory, err error) {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return options, nil, err
	}
	switch l.Type() {
	case "veth", "vlan", "bond":
		return options, o.memory, nil
	}
	if o.Cards.Mode != afxdp.ZeroCopy {
		return o.Cards, o.memory, nil
	}
	return o.Cards, o.zeroCopyMemory, nil
}

// openPacketSocket opens a packet socket.
func (o *Opener) openPacketSocket(link, why string) (ports.Heritable, error) {
	fds := o.From.TakeDescriptors(door.DriverAFPacket, link)
	options := afpacket.Options{Interface: link, Why: why, Offload: o.Offload.Programs(), Attached: o.Given}
	p, err := adoptOr(fds, options, afpacket.Adopt, afpacket.Open)
	if err != nil {
		return nil, err // p would be a non-nil Port
	}
	if fds != nil {
		o.From.OnBegin(p.BeginTraffic)
	}
	return p, nil
}

// Tap makes a tap. If the options name no owner, the Opener's owns it.
func (o *Opener) Tap(options tap.Options) (*tap.Port, error) {
	options.Owner, options.Given = cmp.Or(options.Owner, o.Owner), o.Given
	if !options.Aside && (!o.Given || o.From == nil) { // otherwise the program exists
		options.Offload = o.Offload.Gateway()
	}
	return adoptOr(o.From.TakeDescriptors(door.DriverTap, options.Name), options, tap.Adopt, tap.Open)
}

// Tunnel is a port to other Nodes, by either driver. See package underlay for its methods.
type Tunnel interface {
	ports.Heritable
	SetPeers(nodes []underlay.Peer)
	SetSilent(nodes []netip.Addr)
	SetEgresses(here, far []netip.Addr) error
	AddReceivers(fds []int) error
	Longs() <-chan underlay.Long
	PathMTU(node netip.Addr) int
}

// Tunnel opens the port to other Nodes. driver is kernel; afxdp, on the card link; or auto. auto
// is kernel if the kernel can offload connections, and otherwise afxdp if that is possible. link
// "" is the link with the tunnel's address. The error is ErrDeclined if the predecessor must
// close the port first.
func (o *Opener) Tunnel(c underlay.Config, driver, link string) (Tunnel, error) {
	c.Given = o.Given
	if driver == door.DriverKernel || driver == door.DriverAuto && o.prefersStack(&c) {
		return o.openUnderlay(c)
	}
	p, err := o.openUplink(c, driver, link)
	if err == nil {
		return p, nil
	}
	if driver == door.DriverAFXDP || errors.Is(err, ErrDeclined) {
		return nil, err
	}
	o.Log.Warn("the tunnel goes through the Node's IP stack: AF_XDP is not possible", "error", err)
	return o.openUnderlay(c)
}

// prefersStack reports whether a tunnel with driver auto uses the Node's IP stack. A port that
// another process has opened keeps its driver.
func (o *Opener) prefersStack(c *underlay.Config) bool {
	if given := o.From.driverOf(c.Name); given != "" {
		return given == door.DriverUnderlay
	}
	return o.Offload.Unwrap(c.Kind, c.Local.Is6()) != nil
}

// openUplink opens the tunnel on the Node's card.
func (o *Opener) openUplink(c underlay.Config, driver, link string) (*uplink.Port, error) {
	var err error
	if link == "" {
		if link, err = linkOf(c.Local); err != nil {
			return nil, err
		}
	}
	options, memory, err := o.xdpOptions(link)
	if err != nil {
		return nil, err
	}
	fds := o.From.TakeDescriptors(door.DriverUplink, c.Name)
	with := uplink.Config{Config: c, Link: link, Mode: options.Mode, BusyPoll: options.BusyPoll, Why: "tunnel.driver is " + driver}
	if fds == nil {
		return uplink.Open(memory, with)
	}
	if with.Killed = o.Killed; o.Given {
		with.Why = o.Why
	}
	p, err := uplink.Adopt(memory, with, fds)
	if err != nil {
		return nil, o.From.decline(c.Name, err)
	}
	o.From.addXDPPort(p)
	return p, nil
}

// openUnderlay opens the tunnel through the Node's IP stack.
func (o *Opener) openUnderlay(c underlay.Config) (Tunnel, error) {
	if !o.Given || o.From == nil { // otherwise the program exists
		c.Unwrap = o.Offload.Unwrap(c.Kind, c.Local.Is6())
	}
	p, err := adoptOr(o.From.TakeDescriptors(door.DriverUnderlay, c.Name), c, underlay.Adopt, underlay.Open)
	if err != nil {
		return nil, err // p would be a non-nil Tunnel
	}
	return p, nil
}

// linkOf is the link that has an address, by which packets to other Nodes leave.
func linkOf(address netip.Addr) (string, error) {
	link, err := ways.LinkWith(address)
	if err != nil {
		return "", fmt.Errorf("%w; tunnel.uplink names one", err)
	}
	return link.Attrs().Name, nil
}
