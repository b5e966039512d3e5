package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Addresses and routes as the kernel itself describes them (rtnetlink(7)). A copy of such a
// message, with another link in it, makes the same address or route there. So nothing that this
// program does not know of gets lost: metrics, tables, weights of next hops.
//
//	ifaddrmsg  8 bytes, then attributes: IFA_LABEL is a name of the link
//	rtmsg     12 bytes, then attributes: RTA_OIF is the link, RTA_MULTIPATH has one for each hop

// message is the body of a message about an address (RTM_NEWADDR) or a route (RTM_NEWROUTE).
type message struct {
	What string `json:"what"` // for people
	Body []byte `json:"body"`
}

// Attributes that package unix does not have (linux/rtnetlink.h).
const (
	rtaNextHopID   = 30 // RTA_NH_ID
	routeHopLength = 8  // sizeof(struct rtnexthop)
)

// routeFlags belong to the route. The kernel's other flags tell its state.
const routeFlags = unix.RTNH_F_ONLINK | unix.RTNH_F_PERVASIVE

var errBody = errors.New("no message of the kernel about an address or a route")

// attribute is one of a message. kind has the flags of the type, too.
type attribute struct {
	kind  uint16
	value []byte
}

// split is the head of a message of so many bytes, and its attributes. The values are part of body.
func split(body []byte, head int) ([]byte, []attribute, error) {
	if len(body) < head {
		return nil, nil, errBody
	}
	var all []attribute
	for b := body[head:]; len(b) > 0; {
		if len(b) < unix.SizeofRtAttr {
			return nil, nil, errBody
		}
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return nil, nil, errBody
		}
		all = append(all, attribute{binary.NativeEndian.Uint16(b[2:]), b[unix.SizeofRtAttr:n]})
		b = b[min(aligned(n), len(b)):]
	}
	return body[:head], all, nil
}

// aligned is a length with its padding.
func aligned(n int) int { return (n + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1) }

// join is a message of a head and attributes.
func join(head []byte, all []attribute) []byte {
	b := append([]byte(nil), head...)
	for _, a := range all {
		b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(a.value)))
		b = binary.NativeEndian.AppendUint16(b, a.kind)
		b = append(b, a.value...)
		b = append(b, make([]byte, aligned(len(b))-len(b))...)
	}
	return b
}

// valueOf is the value of an attribute; nil if it is not there.
func valueOf(all []attribute, kind uint16) []byte {
	for _, a := range all {
		if a.kind&nl.NLA_TYPE_MASK == kind {
			return a.value
		}
	}
	return nil
}

// number is a value of four bytes; 0 if it is none.
func number(value []byte) uint32 {
	if len(value) != 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(value)
}

// addressAt is an address's message for a link. A label is a name of the link that had the
// address, and goes with it only there. With noDAD, nobody is asked whether the address is in use.
func addressAt(body []byte, link int, label, noDAD bool) ([]byte, error) {
	head, all, err := split(body, unix.SizeofIfAddrmsg)
	if err != nil {
		return nil, err
	}
	var kept []attribute
	for _, a := range all {
		switch {
		case a.kind == unix.IFA_LABEL && !label:
			continue
		case a.kind == unix.IFA_FLAGS && noDAD && len(a.value) == 4:
			a.value = binary.NativeEndian.AppendUint32(nil, number(a.value)|unix.IFA_F_NODAD)
		}
		kept = append(kept, a)
	}
	at := join(head, kept)
	binary.NativeEndian.PutUint32(at[4:], uint32(link))
	return at, nil
}

// routeAt is a route's message with one link in the place of another.
func routeAt(body []byte, from, to int) ([]byte, error) {
	head, all, err := split(body, unix.SizeofRtMsg)
	if err != nil {
		return nil, err
	}
	var kept []attribute
	for _, a := range all {
		switch a.kind & nl.NLA_TYPE_MASK {
		case unix.RTA_CACHEINFO:
			continue
		case unix.RTA_OIF:
			if number(a.value) == uint32(from) {
				a.value = binary.NativeEndian.AppendUint32(nil, uint32(to))
			}
		case unix.RTA_MULTIPATH:
			if a.value, err = hopsAt(a.value, from, to); err != nil {
				return nil, err
			}
		}
		kept = append(kept, a)
	}
	at := join(head, kept)
	binary.NativeEndian.PutUint32(at[8:], binary.NativeEndian.Uint32(at[8:])&routeFlags)
	return at, nil
}

// hopsAt is next hops (struct rtnexthop: length, flags, weight, link) with another link.
func hopsAt(hops []byte, from, to int) ([]byte, error) {
	hops = append([]byte(nil), hops...)
	for b := hops; len(b) > 0; {
		n := 0
		if len(b) >= routeHopLength {
			n = int(binary.NativeEndian.Uint16(b))
		}
		if n < routeHopLength || n > len(b) {
			return nil, errBody
		}
		b[2] &= routeFlags
		if binary.NativeEndian.Uint32(b[4:]) == uint32(from) {
			binary.NativeEndian.PutUint32(b[4:], uint32(to))
		}
		b = b[min(aligned(n), len(b)):]
	}
	return hops, nil
}

// uses says whether a route leads by a link.
func uses(all []attribute, link int) bool {
	if number(valueOf(all, unix.RTA_OIF)) == uint32(link) {
		return true
	}
	hops := valueOf(all, unix.RTA_MULTIPATH)
	for len(hops) >= routeHopLength {
		if binary.NativeEndian.Uint32(hops[4:]) == uint32(link) {
			return true
		}
		n := int(binary.NativeEndian.Uint16(hops))
		hops = hops[min(max(aligned(n), routeHopLength), len(hops)):]
	}
	return false
}

// addressOfMessage is the address that a message is about, with its prefix.
func addressOfMessage(body []byte) (netip.Prefix, error) {
	head, all, err := split(body, unix.SizeofIfAddrmsg)
	if err != nil {
		return netip.Prefix{}, err
	}
	value := valueOf(all, unix.IFA_LOCAL)
	if value == nil {
		value = valueOf(all, unix.IFA_ADDRESS)
	}
	a, ok := netip.AddrFromSlice(value)
	p := netip.PrefixFrom(a, int(head[1]))
	if !ok || !p.IsValid() {
		return netip.Prefix{}, errBody
	}
	return p, nil
}

// routeText is a route as ip(8) begins it.
func routeText(head []byte, all []attribute) string {
	text := "default"
	if a, ok := netip.AddrFromSlice(valueOf(all, unix.RTA_DST)); ok {
		text = netip.PrefixFrom(a, int(head[1])).String()
	}
	if gw := valueOf(all, unix.RTA_GATEWAY); gw != nil {
		text += " via " + net.IP(gw).String()
	}
	return text
}

// dump asks the kernel for all addresses (RTM_GETADDR) or routes (RTM_GETROUTE) of a family.
func dump(ask, answer uint16, family int) (all [][]byte, err error) {
	const tries = 10 // for a list that changes during the dump
	for range tries {
		req := nl.NewNetlinkRequest(int(ask), unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(family))
		if all, err = req.Execute(unix.NETLINK_ROUTE, answer); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

// send has the kernel do what a message says.
func send(kind uint16, flags int, body []byte, what string) error {
	req := nl.NewNetlinkRequest(int(kind), flags|unix.NLM_F_ACK)
	req.AddRawData(body)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
