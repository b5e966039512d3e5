package tables

import (
	"net/netip"
	"testing"
)

// BenchmarkPod makes the entries of one Pod with both families.
func BenchmarkPod(b *testing.B) {
	list := families{IPv4, IPv6}
	p := New(list.config())
	pod := Pod{Port: web, IPs: list.ips("10.10.0.24")}
	b.ReportAllocs()
	for b.Loop() {
		p.Pod(pod)
	}
}

// BenchmarkRuleClauses makes the entries of a rule with 10,000 sources.
func BenchmarkRuleClauses(b *testing.B) {
	p := New(goldenConfig())
	r := Rule{ID: 2, Direction: Ingress, To: []Address{{Port: web.No}}, Services: []L4Match{{Proto: protoTCP, Port: 80}}}
	for a := netip.MustParseAddr("10.0.0.1"); len(r.From) < 10_000; a = a.Next() {
		r.From = append(r.From, Address{Prefix: host(a)})
	}
	b.ReportAllocs()
	for b.Loop() {
		p.RuleClauses(r)
	}
}

// BenchmarkEndpoint makes the entries of one endpoint.
func BenchmarkEndpoint(b *testing.B) {
	p := New(goldenConfig())
	e := Endpoint{Proto: protoTCP, Addr: netip.MustParseAddrPort("10.10.0.24:80"), Local: true}
	b.ReportAllocs()
	for b.Loop() {
		p.Endpoint(e)
	}
}
