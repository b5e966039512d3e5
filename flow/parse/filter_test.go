package parse_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// filterEntries are entries that the filters separate.
var filterEntries = []string{
	"priority=200,tcp,nw_dst=10.96.0.0/12,tp_dst=80 actions=output:2",
	"priority=190,ip,nw_dst=10.96.0.1 actions=group:1",
	"priority=180,udp,nw_src=10.0.0.5 actions=output:3",
	"priority=0 actions=drop",
	"table=1,priority=100,ip,ct_state=+trk+new actions=output:2,output:3",
	"table=1,priority=90,arp,in_port=2 actions=output:4",
	"table=2,priority=80,tcp6,tcp_flags=+syn-ack actions=drop",
	"table=2,priority=70,ip,reg0=0x1/0xf,reg1=5 actions=resubmit(,3)",
}

// filters choose some of filterEntries.
var filters = []string{
	"", "table=1", "table=SpoofGuard,tcp6", "tcp", "ip", "ipv6", "arp", "udp,nw_src=10.0.0.5", "ip,nw_dst=10.96.0.0/12", "nw_dst=10.96.0.0/16,ip", "ip,nw_dst=10.96.0.1",
	"cookie=0x10002/-1", "cookie=0x10000/0x10000", "cookie=0x10000/0x10001,ip", "out_port=2", "out_port=3,ip", "out_group=1", "ct_state=+trk", "ct_state=+trk-new",
	"in_port=2", "in_port=antrea-gw0", "reg0=1/1", "reg0=0/8", "reg0=0x1", "tcp,tp_dst=80", "tcp6,tcp_flags=+syn",
}

// TestFilterAgreesWithOVS: a filter chooses the entries that ovs-ofctl dump-flows prints with it.
// The filters are those above and the matches of random entries.
func TestFilterAgreesWithOVS(t *testing.T) {
	s := startOVS(t)
	lines := load(t, s, 400)
	for i, line := range filterEntries {
		line = fmt.Sprintf("cookie=%d,%s", 0x10000+i, line)
		askSwitch(t, s, "add-flow", line)
		lines = append(lines, line)
	}
	all := slices.Clone(filters)
	var entries []*flow.Entry
	for i, line := range lines {
		e, err := parse.Entry(line, ovsNames())
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
		if text := e.Match.Text(nil); i%10 == 0 && text != "" {
			all = append(all, text)
		}
	}
	for _, text := range all {
		f, err := parse.Filter(text, ovsNames())
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var got []uint64
		for _, e := range entries {
			if f.Takes(e) {
				got = append(got, e.Cookie)
			}
		}
		want := slices.Sorted(maps.Keys(dump(t, s, "--names", "dump-flows", text)))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q takes the entries with cookies %d, ovs-ofctl those with %d", text, got, want)
		}
	}
}

// TestRefusesFilter: errors in a filter name the column.
func TestRefusesFilter(t *testing.T) {
	for text, want := range map[string]string{
		"tcp,actions=drop":       "a filter has no actions",
		"table=1,table=2":        "table is given twice",
		"n_packets=3":            "a filter takes no n_packets",
		"cookie=0x10/0x0f":       "the value has bits that the mask has not",
		"nw_dst=10.0.0.1":        "nw_dst",
		"out_port=nowhere":       "unknown port",
		"table":                  "expected table=VALUE",
		"priority=high,ip":       "high",
		"ip,nw_dst=10.0.0.1/40":  "40",
		"table=Nonesuch":         "unknown table",
		"out_group=99999999999x": "",
	} {
		if _, err := parse.Filter(text, ovsNames()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	f, err := parse.Filter("priority=200", nil)
	if err != nil || f.Takes(&flow.Entry{Priority: 100}) || !f.Takes(&flow.Entry{Priority: 200}) {
		t.Errorf("priority=200: %v", err)
	}
}
