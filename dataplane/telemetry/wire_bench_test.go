package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// wireFlows is 100,000 entries of the kinds that a Node has most of.
func wireFlows(b *testing.B) []FlowStats {
	all := make([]FlowStats, 100_000)
	for i := range all {
		ip, mac := fmt.Sprintf("10.10.%d.%d", i>>8&0xff, i&0xff), fmt.Sprintf("0a:00:00:00:%02x:%02x", i>>8&0xff, i&0xff)
		line := []string{
			fmt.Sprintf("cookie=0x1030000000000,table=9,priority=200,ip,reg0=0x200/0x200,nw_dst=%s actions=set_field:%s->eth_dst,set_field:192.168.77.102->tun_dst,set_field:0x10/0xf0->reg0,goto_table:10", ip, mac),
			fmt.Sprintf("cookie=0x1050000000000,table=12,priority=190,tcp,reg4=0x20000/0x70000,nw_dst=%s,tp_dst=53 actions=set_field:0x200/0x200->reg0,set_field:0x20000/0x70000->reg4,group:7", ip),
			fmt.Sprintf("cookie=0x1020000000000,table=4,priority=200,ip,in_port=7,dl_src=%s,nw_src=%s actions=goto_table:5", mac, ip),
		}[i%3]
		all[i] = FlowStats{mustEntry(b, line), uint64(i), uint64(700 * i), 9e12, 1e9, i%100 == 0}
	}
	return all
}

// BenchmarkWireFlows writes and reads 100,000 entries with counters: a line each, as a
// server and a client should, and as one list through encoding/json.
func BenchmarkWireFlows(b *testing.B) {
	all := wireFlows(b)
	var lines []byte
	for i := range all {
		lines = append(all[i].AppendJSON(lines), '\n')
	}
	list, err := json.Marshal(all)
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, body func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				body(b)
			}
			b.ReportMetric(float64(b.N)*float64(len(all))/b.Elapsed().Seconds(), "entries/s")
		})
	}
	run("lines/write", func(b *testing.B) {
		buf := lines[:0:0]
		for i := range all {
			if buf = append(all[i].AppendJSON(buf), '\n'); len(buf) > 64<<10 {
				buf = buf[:0]
			}
		}
	})
	run("lines/read", func(b *testing.B) {
		r := bufio.NewScanner(bytes.NewReader(lines))
		for r.Scan() {
			var s FlowStats
			if err := s.UnmarshalJSON(r.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
	})
	run("list/write", func(b *testing.B) {
		if _, err := json.Marshal(all); err != nil {
			b.Fatal(err)
		}
	})
	run("list/read", func(b *testing.B) {
		var got []FlowStats
		if err := json.Unmarshal(list, &got); err != nil {
			b.Fatal(err)
		}
	})
}
