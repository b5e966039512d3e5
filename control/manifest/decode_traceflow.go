package manifest

import (
	"cmp"
	gojson "encoding/json"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/antrail/antrail/control/cluster"
)

// Traceflows: the fields of crd.antrea.io/v1beta1 and v1alpha1 under their published names.

type traceflowManifest struct {
	objectManifest `json:",inline"`

	Spec struct {
		Source      tracedEndManifest    `json:"source"`
		Destination tracedEndManifest    `json:"destination"`
		Packet      tracedPacketManifest `json:"packet"`
		LiveTraffic bool                 `json:"liveTraffic"`
		DroppedOnly bool                 `json:"droppedOnly"`
		Timeout     *int32               `json:"timeout"`
	} `json:"spec"`
	// Status may have fields of other releases.
	Status ignored `json:"status"`
}

type tracedEndManifest struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Service   string `json:"service"`
	IP        string `json:"ip"`
}

type tracedPacketManifest struct {
	SrcIP    string `json:"srcIP"`
	DstIP    string `json:"dstIP"`
	Length   int32  `json:"length"`
	IPHeader *struct {
		SrcIP    string `json:"srcIP"` // of v1alpha1
		Protocol int32  `json:"protocol"`
		TTL      int32  `json:"ttl"`
		Flags    int32  `json:"flags"`
	} `json:"ipHeader"`
	IPv6Header *struct {
		SrcIP      string `json:"srcIP"`
		NextHeader *int32 `json:"nextHeader"`
		HopLimit   int32  `json:"hopLimit"`
	} `json:"ipv6Header"`
	Transport struct {
		ICMP *struct {
			ID       int32 `json:"id"`
			Sequence int32 `json:"sequence"`
		} `json:"icmp"`
		UDP *tracedPortsManifest `json:"udp"`
		TCP *struct {
			tracedPortsManifest `json:",inline"`
			Flags               *int32 `json:"flags"`
		} `json:"tcp"`
	} `json:"transportHeader"`
}

type tracedPortsManifest struct {
	SrcPort int32 `json:"srcPort"`
	DstPort int32 `json:"dstPort"`
}

// IP protocols of Traceflows, and the TCP flag that opens a connection.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	tcpSyn      = 2
)

// defaultTraceTime is the default timeout of a Traceflow, mostTraceTime the longest, in seconds.
const (
	defaultTraceTime = 20
	mostTraceTime    = 300
)

func decodeTraceflow(c *check, in *traceflowManifest) cluster.Object {
	s := &in.Spec
	t := &cluster.Traceflow{Meta: c.meta, UID: string(in.UID), Version: in.ResourceVersion, Timeout: defaultTraceTime * time.Second}
	if s.LiveTraffic || s.DroppedOnly {
		c.forbidden(specAt.Child("liveTraffic"), "antrail sends a packet for a Traceflow; antrail trace --live watches packets as they pass")
	}
	if s.Timeout != nil {
		if *s.Timeout < 1 || *s.Timeout > mostTraceTime {
			c.invalid(specAt.Child("timeout"), *s.Timeout, "must be between 1 and %d seconds", mostTraceTime)
		}
		t.Timeout = time.Duration(*s.Timeout) * time.Second
	}
	c.tracedEnds(t, &s.Source, &s.Destination)
	t.Packet = c.tracedPacket(specAt.Child("packet"), &s.Packet)
	if t.Addr.IsValid() && t.Addr.Is6() != t.Packet.IPv6 {
		c.invalid(specAt.Child("destination", "ip"), t.Addr.String(), "must be of the packet's family: ipv6Header makes an IPv6 packet")
	}
	if len(in.Status) > 0 && gojson.Unmarshal(in.Status, &t.Status) != nil {
		t.Status = cluster.TraceflowStatus{} // an unreadable status: the Traceflow begins again
	}
	return t
}

// tracedEnds reads the source, which is a Pod, and the destination.
func (c *check) tracedEnds(t *cluster.Traceflow, source, destination *tracedEndManifest) {
	at := specAt.Child("source")
	t.Source = c.tracedName(at.Child("pod"), source.Namespace, source.Pod)
	if source.IP != "" || source.Service != "" {
		c.forbidden(at, "a Traceflow's source is a Pod: antrail sends the packet as that Pod")
	}
	at = specAt.Child("destination")
	n := 0
	for _, given := range []string{destination.Pod, destination.Service, destination.IP} {
		if given != "" {
			n++
		}
	}
	switch {
	case n != 1:
		c.required(at, "must have exactly one of pod, service and ip")
	case destination.Pod != "":
		t.Pod = c.tracedName(at.Child("pod"), destination.Namespace, destination.Pod)
	case destination.Service != "":
		t.Service = c.tracedName(at.Child("service"), destination.Namespace, destination.Service)
	default:
		t.Addr = c.addr(at.Child("ip"), destination.IP)
		if t.Addr.IsValid() && (t.Addr.IsMulticast() || t.Addr.IsUnspecified() || t.Addr.IsLoopback()) {
			c.invalid(at.Child("ip"), destination.IP, "may not be unspecified, loopback or multicast")
			t.Addr = netip.Addr{}
		}
	}
}

// tracedName is the name of an end. The default namespace is "default".
func (c *check) tracedName(at *field.Path, namespace, name string) cluster.Name {
	namespace = cmp.Or(namespace, metav1.NamespaceDefault)
	return cluster.Name{Namespace: namespace, Name: c.name(at, name)}
}

func (c *check) tracedPacket(at *field.Path, in *tracedPacketManifest) cluster.TracedPacket {
	p := cluster.TracedPacket{IPv6: in.IPv6Header != nil, Protocol: protoICMP}
	if p.IPv6 {
		p.Protocol = protoICMPv6
	}
	if in.SrcIP != "" || in.DstIP != "" || in.Length != 0 {
		c.forbidden(at, "srcIP, dstIP and length are a captured packet's; source and destination say where a packet goes")
	}
	switch {
	case in.IPHeader != nil && p.IPv6:
		c.forbidden(at.Child("ipv6Header"), "may not be set together with ipHeader")
	case p.IPv6:
		h, at := in.IPv6Header, at.Child("ipv6Header")
		p.TTL = uint8(c.ranged(at.Child("hopLimit"), h.HopLimit, 255))
		if h.NextHeader != nil {
			p.Protocol = c.tracedProtocol(at.Child("nextHeader"), *h.NextHeader, protoICMPv6)
		}
		c.noSource(at, h.SrcIP)
	case in.IPHeader != nil:
		h, at := in.IPHeader, at.Child("ipHeader")
		p.TTL = uint8(c.ranged(at.Child("ttl"), h.TTL, 255))
		if h.Protocol != 0 {
			p.Protocol = c.tracedProtocol(at.Child("protocol"), h.Protocol, protoICMP)
		}
		if h.Flags != 0 && h.Flags != dontFragment {
			c.invalid(at.Child("flags"), h.Flags, "must be 0 or %d (do not fragment): a fragment alone goes nowhere", dontFragment)
		}
		p.DontFragment = h.Flags == dontFragment
		c.noSource(at, h.SrcIP)
	}
	c.tracedTransport(at.Child("transportHeader"), in, &p)
	return p
}

// dontFragment is one of the three flags of an IPv4 header (RFC 791, section 3.1).
const dontFragment = 2

func (c *check) noSource(at *field.Path, source string) {
	if source != "" {
		c.forbidden(at.Child("srcIP"), "the packet has the source Pod's address")
	}
}

func (c *check) tracedProtocol(at *field.Path, n int32, icmp uint8) uint8 {
	switch n {
	case protoTCP, protoUDP, int32(icmp):
		return uint8(n)
	}
	c.invalid(at, n, "must be %d (TCP), %d (UDP) or %d (ICMP)", protoTCP, protoUDP, icmp)
	return icmp
}

// tracedTransport reads the transport header. It decides on the protocol if the IP header does not.
func (c *check) tracedTransport(at *field.Path, in *tracedPacketManifest, p *cluster.TracedPacket) {
	named := in.IPHeader != nil && in.IPHeader.Protocol != 0 || in.IPv6Header != nil && in.IPv6Header.NextHeader != nil
	icmp := p.Protocol
	if named && (icmp == protoTCP || icmp == protoUDP) {
		icmp = 0
	}
	given := map[uint8]bool{protoTCP: in.Transport.TCP != nil, protoUDP: in.Transport.UDP != nil, icmp: in.Transport.ICMP != nil}
	for proto, is := range given {
		switch {
		case is && named && proto != p.Protocol:
			c.forbidden(at, "is of another protocol than the IP header says")
		case is:
			p.Protocol = proto
		}
	}
	switch h := in.Transport; {
	case h.TCP != nil && (h.UDP != nil || h.ICMP != nil) || h.UDP != nil && h.ICMP != nil:
		c.forbidden(at, "may have one of icmp, udp and tcp")
	case h.ICMP != nil:
		p.ICMPID = uint16(c.ranged(at.Child("icmp", "id"), h.ICMP.ID, 65535))
		p.ICMPSeq = uint16(c.ranged(at.Child("icmp", "sequence"), h.ICMP.Sequence, 65535))
	case h.UDP != nil:
		c.tracedPorts(at.Child("udp"), h.UDP, p)
	case h.TCP != nil:
		c.tracedPorts(at.Child("tcp"), &h.TCP.tracedPortsManifest, p)
		p.TCPFlags = tcpSyn
		if h.TCP.Flags != nil {
			p.TCPFlags = uint8(c.ranged(at.Child("tcp", "flags"), *h.TCP.Flags, 255))
		}
	}
	if (p.Protocol == protoTCP || p.Protocol == protoUDP) && p.DstPort == 0 {
		c.required(at, "a packet of TCP or UDP needs a dstPort")
	}
}

func (c *check) tracedPorts(at *field.Path, in *tracedPortsManifest, p *cluster.TracedPacket) {
	p.SrcPort = uint16(c.ranged(at.Child("srcPort"), in.SrcPort, 65535))
	p.DstPort = uint16(c.ranged(at.Child("dstPort"), in.DstPort, 65535))
}

// ranged checks a number from 0 to last.
func (c *check) ranged(at *field.Path, n, last int32) int32 { return c.within(at, &n, last) }
