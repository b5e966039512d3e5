package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/packet"
)

// The two ends of a question.

// whyEnd is one end.
type whyEnd struct {
	place control.Place
	port  uint16
	name  string // the name of an end without an object: outside
	// dial is the protocol of the Service's port.
	dial cluster.Protocol
}

// outside are documentation addresses, which no host has (RFC 5737, RFC 3849).
var outside = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}

// WhyProtocols are the protocols that a question may name.
var WhyProtocols = map[string]uint8{"tcp": packet.ProtoTCP, "udp": packet.ProtoUDP, "sctp": packet.ProtoSCTP, "icmp": packet.ProtoICMP}

// findEnds parses both ends of a request, and chooses their addresses.
func (q *asking) findEnds(r *api.WhyRequest) (err error) {
	ok := true
	if r.Protocol != "" {
		if q.proto, ok = WhyProtocols[r.Protocol]; !ok {
			return fmt.Errorf("protocol %q is none of tcp, udp, sctp and icmp", r.Protocol)
		}
	}
	if q.from, err = q.end(r.From); err != nil {
		return fmt.Errorf("from %q: %w", r.From, err)
	}
	if q.from.place.Object.Kind == cluster.KindService {
		return fmt.Errorf("from %q: a Service sends no packets; name a Pod", r.From)
	}
	if q.withoutPort(&q.from.place) {
		return fmt.Errorf("from %q: the Pod has no port in this Node's switch yet", r.From)
	}
	if q.to, err = q.end(r.To); err != nil {
		return fmt.Errorf("to %q: %w", r.To, err)
	}
	if err = q.chooseProtocol(); err != nil {
		return fmt.Errorf("to %q: %w", r.To, err)
	}
	return q.chooseFamily(r.IPv6)
}

// withoutPort says whether a place is a Pod of this Node that should have a port in its switch,
// but has none.
func (q *asking) withoutPort(p *control.Place) bool {
	return p.Object.Kind == cluster.KindPod && p.Node == q.self.Node && p.Port == 0 && !q.isNode(p.Addrs)
}

// isNode says whether addresses are this Node's: then a Pod that has them is in the Node's
// network.
func (q *asking) isNode(addrs []netip.Addr) bool {
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool { return slices.Contains(q.self.Addresses, a) })
}

// chooseProtocol fills in a missing protocol. It returns an error if a port is missing.
func (q *asking) chooseProtocol() error {
	if q.proto == 0 {
		q.proto = packet.ProtoTCP
		if q.to.dial != 0 {
			q.proto = uint8(q.to.dial)
		}
	}
	switch {
	case q.to.dial != 0 && uint8(q.to.dial) != q.proto:
		return fmt.Errorf("the Service's port is for %s", q.to.dial)
	case q.proto != packet.ProtoICMP && q.to.port == 0:
		return errors.New("a port is missing: PLACE:PORT")
	}
	return nil
}

// chooseFamily chooses the first IP family that both ends have.
func (q *asking) chooseFamily(six bool) error {
	for _, v6 := range []bool{false, true} {
		if six && !v6 {
			continue
		}
		src, dst := ofFamily(q.from.place.Addrs, v6), ofFamily(q.to.place.Addrs, v6)
		if src.IsValid() && dst.IsValid() {
			q.src, q.dst = src, dst
			if v6 && q.proto == packet.ProtoICMP {
				q.proto = packet.ProtoICMPv6
			}
			return nil
		}
	}
	return fmt.Errorf("the ends have no addresses of one family: %v and %v", q.from.place.Addrs, q.to.place.Addrs)
}

func ofFamily(addrs []netip.Addr, v6 bool) netip.Addr {
	for _, a := range addrs {
		if a.Unmap().Is6() == v6 {
			return a.Unmap()
		}
	}
	return netip.Addr{}
}

// end parses one end.
func (q *asking) end(text string) (e whyEnd, err error) {
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return q.someone(a), nil
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		e = q.someone(a.Addr())
		e.port = a.Port()
		return e, nil
	}
	if service, ok := strings.CutPrefix(text, "svc:"); ok {
		return q.service(service)
	}
	name, port, _ := strings.Cut(text, ":")
	switch name {
	case "external":
		e.place.Addrs, e.name = outside, "the outside"
	case "node":
		e.place = control.Place{Object: cluster.Key{Kind: cluster.KindNode, Name: q.self.Node}, Node: q.self.Node, Addrs: q.self.GatewayAddresses}
	default:
		return q.pod(name, port)
	}
	e.port, err = number(port)
	return e, err
}

// someone is the end with an address.
func (q *asking) someone(a netip.Addr) whyEnd {
	return whyEnd{place: q.p.Objects.PlaceOf(a.Unmap())}
}

func number(port string) (uint16, error) {
	if port == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("port %q is not between 1 and 65535", port)
	}
	return uint16(n), nil
}

var errEnd = errors.New("an end is namespace/pod, an address, svc:namespace/name, external or node, then :port (TCP by default; --udp, --sctp and --icmp change that)")

func splitName(text string) (cluster.Name, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return cluster.Name{}, errEnd
	}
	return cluster.Name{Namespace: namespace, Name: name}, nil
}

func (q *asking) pod(text, port string) (e whyEnd, err error) {
	n, err := splitName(text)
	if err != nil {
		return e, err
	}
	if e.place, err = q.p.Objects.PodPlace(n); err != nil {
		return e, err
	}
	if strings.Trim(port, "0123456789") == "" {
		e.port, err = number(port)
		return e, err
	}
	proto := cmp.Or(cluster.Protocol(q.proto), cluster.TCP)
	e.port, err = q.p.Objects.PodPort(n, port, proto)
	return e, err
}

func (q *asking) service(text string) (e whyEnd, err error) {
	name, port, _ := strings.Cut(text, ":")
	n, err := splitName(name)
	if err != nil {
		return e, err
	}
	place, chosen, err := q.p.Objects.ServicePlace(n, port)
	return whyEnd{place: place, port: chosen.Port, dial: chosen.Protocol}, err
}

// String names the end.
func (e *whyEnd) String() string {
	switch k := e.place.Object; {
	case e.name != "":
		return e.name
	case k.Kind == cluster.KindPod:
		return k.Namespace + "/" + k.Name
	case k != cluster.Key{}:
		return objectText(k)
	case len(e.place.Addrs) > 0:
		return e.place.Addrs[0].String()
	}
	return "nobody"
}

// objectText is an object in a sentence: NetworkPolicy shop/web.
func objectText(k cluster.Key) string {
	if k.Namespace == "" {
		return fmt.Sprintf("%s %s", k.Kind, k.Name)
	}
	return fmt.Sprintf("%s %s/%s", k.Kind, k.Namespace, k.Name)
}
