package flow_test

import (
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// TestAssumeFirst: missing parts of a description are as in the first packet of a
// connection. Given parts stay.
func TestAssumeFirst(t *testing.T) {
	for text, want := range map[string]string{
		"tcp":                            "tcp,nw_ttl=64,tp_src=40000,tcp_flags=syn",
		"tcp6,tp_src=7,nw_ttl=1":         "tcp6,nw_ttl=1,tp_src=7,tcp_flags=syn",
		"udp6":                           "udp6,nw_ttl=64,tp_src=40000",
		"icmp":                           "icmp,nw_ttl=64,icmp_type=8",
		"icmp6":                          "icmp6,nw_ttl=64,icmp_type=128",
		"icmp6,icmp_type=135":            "icmp6,nw_ttl=255,icmp_type=135",
		"icmp6,icmp_type=136,nw_ttl=254": "icmp6,nw_ttl=254,icmp_type=136",
		"icmp6,icmp_type=1":              "icmp6,nw_ttl=64,icmp_type=1",
		"ip":                             "ip,nw_ttl=64",
		"arp":                            "arp",
		"dl_type=0x88cc":                 "dl_type=0x88cc",
	} {
		m, err := parse.Match(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		flow.AssumeFirst(&m)
		if got := m.Text(nil); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
