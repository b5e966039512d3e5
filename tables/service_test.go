package tables

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// TestServiceForms shows what each form of a Service's address becomes.
func TestServiceForms(t *testing.T) {
	c := families{IPv4, IPv6}.config()
	c.Features.DSR = true
	p := New(c)
	ip := netip.MustParseAddr
	var b strings.Builder
	for _, s := range []struct {
		name string
		addr ServiceAddress
	}{
		{"UDP", ServiceAddress{Proto: protoUDP, Addr: ip("10.96.0.10"), Port: 53, Group: 20}},
		{"SCTP with affinity", ServiceAddress{Proto: protoSCTP, Addr: ip("10.96.0.11"), Port: 9, Group: 21, AffinitySeconds: 60}},
		{"NodePort with affinity, IPv6",
			ServiceAddress{Proto: protoTCP, Family: IPv6, Port: 30001, Group: 22, External: true, AffinitySeconds: 65535}},
		{"NodePort, externalTrafficPolicy Local",
			ServiceAddress{Proto: protoTCP, Family: IPv4, Port: 30002, Group: 23, ClusterGroup: 24, External: true}},
		{"LoadBalancer with source ranges, externalTrafficPolicy Local", ServiceAddress{
			Proto: protoTCP, Addr: ip("192.0.2.1"), Port: 80, Group: 25, ClusterGroup: 26, External: true,
			SourceRanges: []netip.Prefix{
				netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.7/32"),
				netip.MustParsePrefix("2001:db8::/32"),
			},
		}},
		{"LoadBalancer in DSR mode",
			ServiceAddress{Proto: protoTCP, Addr: ip("192.0.2.2"), Port: 80, Group: 27, LocalGroup: 28, External: true, DSR: true}},
		{"LoadBalancer in IPv6: no DSR mode",
			ServiceAddress{Proto: protoUDP, Addr: ip("2001:db8::2"), Port: 53, Group: 29, External: true, DSR: true}},
	} {
		fmt.Fprintf(&b, "%s\n  %s\n", s.name, strings.Join(lines(t, p.ServiceAddress(s.addr), p.Names()), "\n  "))
	}
	host := Endpoint{Proto: protoTCP, Addr: netip.MustParseAddrPort("192.168.77.103:6443"), Host: true}
	fmt.Fprintf(&b, "endpoint in a Node's network\n  %s\n %s\n", strings.Join(lines(t, p.Endpoint(host), p.Names()), "\n  "),
		p.EndpointGroup(EndpointGroup{ID: 30, Endpoints: []Endpoint{host}}).Text(p.Names()))
	compareText(t, "services.txt", b.String())
}
