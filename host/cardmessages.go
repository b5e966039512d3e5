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

// Addresses and routes in the kernel's own format (rtnetlink(7)). A copy of such a message
// with another link index makes the same address or route on that link. So attributes that
// this program does not know are kept, too: metrics, tables, weights of next hops.
//
//	ifaddrmsg  8 bytes, then attributes: IFA_LABEL is a name of the link
//	rtmsg     12 bytes, then attributes: RTA_OIF is the link, RTA_MULTIPATH has one for each hop

// message is the body of a message about an address (RTM_NEWADDR) or a route (RTM_NEWROUTE).
type message struct {
	What string `json:"what"` // a name for logs and errors
	Body []byte `json:"body"`
}

// Attributes that package unix lacks (linux/rtnetlink.h).
const (
	rtaNextHopID   = 30 // RTA_NH_ID
	routeHopLength = 8  // sizeof(struct rtnexthop)
)

// routeFlags belong to the route itself. The kernel's other flags are its state.
const routeFlags = unix.RTNH_F_ONLINK | unix.RTNH_F_PERVASIVE

var errBody = errors.New("not a netlink message about an address or a route")

// attribute is an attribute of a message. kind includes the flags of the type.
type attribute struct {
	kind  uint16
	value []byte
}

// split cuts a message into its head, of that many bytes, and its attributes. The values
// are slices of body.
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

// aligned is a length with padding.
func aligned(n int) int { return (n + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1) }

// join makes a message of a head and attributes.
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

// valueOf is the value of an attribute; nil if the message lacks it.
func valueOf(all []attribute, kind uint16) []byte {
	for _, a := range all {
		if a.kind&nl.NLA_TYPE_MASK == kind {
			return a.value
		}
	}
	return nil
}

// number is a four-byte value; 0 for any other length.
func number(value []byte) uint32 {
	if len(value) != 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(value)
}

// addressAt is an address message for another link. The label, a name of the original link,
// is kept only if label is true. With noDAD, the kernel skips duplicate address detection.
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

// routeAt is a route message with one link replaced by another.
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

// hopsAt are next hops (struct rtnexthop: length, flags, weight, link) with one link
// replaced.
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

// uses says whether a route leaves by a link.
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

// addressOfMessage is the address of a message, with its prefix length.
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

// routeText is a route as at the beginning of a line of ip(8).
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

// dump lists all addresses (RTM_GETADDR) or routes (RTM_GETROUTE) of a family.
func dump(ask, answer uint16, family int) (all [][]byte, err error) {
	const tries = 10 // the list may change during the dump
	for range tries {
		req := nl.NewNetlinkRequest(int(ask), unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(family))
		if all, err = req.Execute(unix.NETLINK_ROUTE, answer); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

// send sends a message to the kernel, and waits for the acknowledgement.
func send(kind uint16, flags int, body []byte, what string) error {
	req := nl.NewNetlinkRequest(int(kind), flags|unix.NLM_F_ACK)
	req.AddRawData(body)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
