package reach

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// end is one end of the question. Without objects it is an address, the port of the switch that
// it is at, and its MAC address.
type end struct {
	addr   netip.Addr
	l4     uint16     // TCP, UDP or SCTP port; 0 for none
	port   uint32     // of the switch; 0 if unknown
	mac    flow.Value // a placeholder if unknown
	hasMAC bool
}

// The MAC addresses in place of unknown ones (RFC 7042, section 2.1.2: for documentation).
const unknownSource, unknownDestination = 0x00005e005301, 0x00005e005302

var errEnd = errors.New("without objects an end is ADDRESS, ADDRESS:PORT or the name of a port of the switch, then ,MAC and @PORT of the switch; only the controller knows Pods and Services")

// findEnds parses both ends, and finds what they leave out.
func (q *asking) findEnds(r *api.WhyRequest) (err error) {
	known := false
	if q.proto, known = pipeline.WhyProtocols[cmp.Or(r.Protocol, "tcp")]; !known {
		return fmt.Errorf("protocol %q is none of tcp, udp, sctp and icmp", r.Protocol)
	}
	if q.from, err = q.read(r.From, r.IPv6); err == nil {
		err = q.findSource()
	}
	if err != nil {
		return fmt.Errorf("from %q: %w", r.From, err)
	}
	if q.to, err = q.read(r.To, q.from.addr.Is6()); err == nil {
		err = q.findDestination()
	}
	if err != nil {
		return fmt.Errorf("to %q: %w", r.To, err)
	}
	return nil
}

// read reads ADDRESS[:PORT][,MAC][@PORT], with a port's name in place of its one address.
func (q *asking) read(text string, v6 bool) (e end, err error) {
	place, port, atPort := strings.Cut(text, "@")
	if atPort {
		if e.port, err = q.senders.portNamed(port); err != nil {
			return e, err
		}
	}
	place, mac, hasMAC := strings.Cut(place, ",")
	if hasMAC {
		hw, err := net.ParseMAC(mac)
		if err != nil || len(hw) != len(packet.MAC{}) {
			return e, fmt.Errorf("%q is not a MAC address", mac)
		}
		e.mac, e.hasMAC = flow.ValueOfMAC(hw), true
	}
	if a, err := netip.ParseAddr(strings.Trim(place, "[]")); err == nil {
		e.addr = a.Unmap()
		return e, nil
	}
	if a, err := netip.ParseAddrPort(place); err == nil {
		e.addr, e.l4 = a.Addr().Unmap(), a.Port()
		return e, nil
	}
	if atPort {
		return e, errEnd
	}
	return e, q.readPort(&e, place, v6)
}

// readPort reads the name or number of a port of the switch, with :PORT behind it.
func (q *asking) readPort(e *end, place string, v6 bool) (err error) {
	name, l4, hasL4 := strings.Cut(place, ":")
	if hasL4 {
		n, err := strconv.ParseUint(l4, 10, 16)
		if err != nil || n == 0 {
			return errEnd
		}
		e.l4 = uint16(n)
	}
	if e.port, err = q.senders.portNamed(name); err != nil {
		return errEnd
	}
	addrs := q.senders.addressesAt(e.port, v6)
	if len(addrs) != 1 {
		return fmt.Errorf("%s at port %s: say ADDRESS@%s", countText(len(addrs), "address is matched by entries", "addresses are matched by entries"), name, name)
	}
	e.addr = addrs[0]
	return nil
}

// findSource looks for the port and the MAC address of the first end.
func (q *asking) findSource() error {
	e := &q.from
	if e.port == 0 {
		ports := q.senders.portsOf(e)
		if len(ports) != 1 {
			return q.noPort(ports)
		}
		e.port = ports[0]
	}
	q.findMAC(e, unknownSource)
	return nil
}

// noPort is the error of an end with several possible ports, or none.
func (q *asking) noPort(ports []uint32) error {
	if len(ports) == 0 {
		return fmt.Errorf("no entry, connection or dropped packet tells by which port it sends: say ADDRESS@PORT, with one of %s", q.senders.namesOf(nil))
	}
	return fmt.Errorf("it may send by several ports: say ADDRESS@PORT, with one of %s", q.senders.namesOf(ports))
}

// findDestination looks for the port and the MAC address of the second end. The port may stay
// unknown.
func (q *asking) findDestination() error {
	e := &q.to
	switch {
	case e.addr.Is4() != q.from.addr.Is4():
		return fmt.Errorf("%s and %s are not of one family", q.from.addr, e.addr)
	case q.proto != packet.ProtoICMP && e.l4 == 0:
		return errors.New("a port is missing: ADDRESS:PORT")
	case q.proto == packet.ProtoICMP && e.addr.Is6():
		q.proto = packet.ProtoICMPv6
	}
	if e.port == 0 {
		if ports := q.senders.portsOf(e); len(ports) == 1 {
			e.port = ports[0]
		}
	}
	if mac, ok := q.senders.macTowards(q.from.addr, e.addr); ok && !e.hasMAC {
		e.mac, e.hasMAC = mac, true
	}
	q.findMAC(e, unknownDestination)
	return nil
}

// findMAC looks for the MAC address of an end. Without one the end has a placeholder.
func (q *asking) findMAC(e *end, placeholder uint64) {
	if e.hasMAC {
		return
	}
	if macs := q.senders.macsOf(e); len(macs) == 1 {
		e.mac, e.hasMAC = macs[0], true
		return
	}
	e.mac = flow.Value{Lo: placeholder}
}

// text is the end in words.
func (q *asking) text(e *end) string {
	if e.port == 0 {
		return e.addr.String()
	}
	return e.addr.String() + " at " + q.senders.name(e.port)
}

// notes say what the answer does not know.
func (q *asking) notes() (all []string) {
	for _, e := range []*end{&q.from, &q.to} {
		if !e.hasMAC {
			all = append(all, fmt.Sprintf("nothing tells the MAC address of %s: the walk has %s", e.addr, macText(e.mac)))
		}
	}
	return append(all, "entries of another controller have cookies, not objects: which policy or Service wants an entry, only that controller knows")
}

func macText(v flow.Value) string {
	mac := v.MAC()
	return net.HardwareAddr(mac[:]).String()
}

func countText(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// unique adds a value to a list that lacks it.
func unique[T comparable](all []T, v T) []T {
	if slices.Contains(all, v) {
		return all
	}
	return append(all, v)
}
