package dataplane_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// Benchmarks of large pipelines: two-nodes/node-a with rules of policies and
// Services that none of the packets meets.

// parseEntry is one entry by the names of the switch.
func (l *loaded) parseEntry(format string, args ...any) *flow.Entry {
	e, err := parse.Entry(fmt.Sprintf(format, args...), l.sw.Names())
	l.check(err)
	return e
}

// rules are entries of n rules of policies: each is one source address, one port
// and the pod that receives. A hundred have one priority.
func (l *loaded) rules(n int) (all []*flow.Entry) {
	const table = "table=AntreaPolicyIngressRule,priority=%d,"
	for first := 0; first < n; first += 100 {
		var pod []string
		priority := 14000 - first/100
		for i := first; i < min(first+100, n); i++ {
			id := 1000 + i
			pod = append(pod, fmt.Sprintf("conjunction(%d,2/3)", id))
			all = append(all,
				l.parseEntry(table+"conj_id=%d,ip actions=drop", priority, id),
				l.parseEntry(table+"ip,nw_src=172.%d.%d.%d actions=conjunction(%d,1/3)", priority, 16+i>>16, i>>8&255, i&255, id),
				l.parseEntry(table+"udp,tp_dst=%d actions=conjunction(%d,3/3)", priority, 10000+i%100, id))
		}
		all = append(all, l.parseEntry(table+"reg1=37 actions=%s", priority, strings.Join(pod, ",")))
	}
	return all
}

// service is a Service with one endpoint.
func (l *loaded) service(i int) *flow.Bundle {
	const choose = "table=ServiceLB,priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.%d.%d.%d,tp_dst=80 actions=set_field:0x200/0x200->reg0,set_field:0x20000/0x70000->reg4,group:%d"
	bucket := flow.Bucket{Weight: 100, Actions: l.parseEntry("table=0 actions=set_field:0xa0a0018->reg3,set_field:0x50/0xffff->reg4,resubmit(,EndpointDNAT)").Actions}
	return &flow.Bundle{
		Add:    []*flow.Entry{l.parseEntry(choose, 112+i>>16, i>>8&255, i&255, 1000+i)},
		Groups: []*flow.Group{{ID: uint32(1000 + i), Type: flow.GroupSelect, Buckets: []flow.Bucket{bucket}}},
	}
}

// services are n of them.
func (l *loaded) services(n int) *flow.Bundle {
	all := &flow.Bundle{}
	for i := range n {
		s := l.service(i)
		all.Add, all.Groups = append(all.Add, s.Add...), append(all.Groups, s.Groups...)
	}
	return all
}

// BenchmarkScale is the cost of a packet by the size of the pipeline: of an
// established connection, the first of one, and the first with each table looked
// up.
func BenchmarkScale(b *testing.B) {
	for _, size := range []struct {
		what  string
		n     int
		cache int
	}{
		{"rules", 10, 0}, {"rules", 1000, 0}, {"rules", 100_000, 0}, {"services", 10, 0}, {"services", 10_000, 0},
		{"rules", 10, -1}, {"rules", 1000, -1}, {"rules", 100_000, -1}, {"services", 10, -1}, {"services", 10_000, -1},
	} {
		l := newLoaded(b, 1, size.cache, false)
		load := &flow.Bundle{}
		if size.what == "rules" {
			load.Add = l.rules(size.n)
		} else {
			load = l.services(size.n)
		}
		l.check(l.sw.Apply(load))
		name := map[int]string{0: "remembered", -1: "walk"}[size.cache]
		b.Run(fmt.Sprintf("%s/known/%s=%d", name, size.what, size.n), func(b *testing.B) {
			l.pass()
			measure(b, l.pass)
		})
		l.frames = [][]byte{l.firstOf("udp")}
		for n := range uint32(mostFirst / 64) {
			l.sendFirstPackets(n * 64)
		}
		b.Run(fmt.Sprintf("%s/first/%s=%d", name, size.what, size.n), l.firsts)
	}
}

// BenchmarkInstall is what a change costs on a Node with 10,000 Services and
// 10,000 rules: one clause of a rule, one Service, and a thousand clauses at
// once; the figures are per entry.
func BenchmarkInstall(b *testing.B) {
	for _, change := range []struct {
		name   string
		bundle func(l *loaded, i int) *flow.Bundle
		each   int
	}{
		{"rule", func(l *loaded, i int) *flow.Bundle {
			return &flow.Bundle{Add: []*flow.Entry{l.clause(i)}}
		}, 1},
		{"service", (*loaded).newService, 1},
		{"bulk", func(l *loaded, i int) *flow.Bundle {
			all := &flow.Bundle{}
			for j := range 1000 {
				all.Add = append(all.Add, l.clause(i+j))
			}
			return all
		}, 1000},
	} {
		b.Run(change.name, func(b *testing.B) {
			l := newLoaded(b, 1, 0, false)
			l.check(l.sw.Apply(&flow.Bundle{Add: l.rules(10_000)}))
			l.check(l.sw.Apply(l.services(10_000)))
			var bundles []*flow.Bundle
			for i := 0; i < b.N; i += change.each {
				bundles = append(bundles, change.bundle(l, i))
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			next := 0
			b.ResetTimer()
			start := threadTime()
			for n := 0; n < b.N; n += change.each {
				l.check(l.sw.Apply(bundles[next]))
				next++
			}
			b.ReportMetric(float64(threadTime()-start)/float64(b.N), "cpu-ns/op")
		})
	}
}

// clause is a rule's clause with an address of its own.
func (l *loaded) clause(i int) *flow.Entry {
	return l.parseEntry("table=AntreaPolicyIngressRule,priority=13990,ip,nw_src=192.%d.%d.%d actions=conjunction(1005,1/3)", i>>16&255, i>>8&255, i&255)
}

func (l *loaded) newService(i int) *flow.Bundle { return l.service(100_000 + i) }
