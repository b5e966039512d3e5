package ofserver

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/packet/packettest"
)

// counted are the parts of a line that are not compared: times, bytes and reset_counts.
var counted = regexp.MustCompile(`duration=[0-9.]+s, |reset_counts |n_bytes=[0-9]+, |(idle|hard)_age=[0-9]+, `)

// TestCountersAsOpenVSwitch adds and modifies entries that have counted packets, with reset_counts
// and without, and deletes entries that learn with delete_learned and without. Counters and learned
// entries are then as in Open vSwitch.
func TestCountersAsOpenVSwitch(t *testing.T) {
	for _, version := range []string{"10", "13", "15"} {
		t.Run("OpenFlow"+version, func(t *testing.T) {
			ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "p2", Number: 2})
			r := newRig(t)
			both := []*watcher{{t: t, dir: r.dir}, {t: t, dir: ovs.Dir}}
			do := func(command, arg string) {
				t.Helper()
				for _, w := range both {
					w.do(version, command, arg)
				}
			}
			send := func(port uint16) {
				t.Helper()
				frame := packettest.UDP4(packettest.Options{SrcPort: port, DstPort: 53})
				if err := r.ports[1].Send(frame); err != nil {
					t.Fatal(err)
				}
				r.sw.Poll()
				if text, err := ovs.Appctl("netdev-dummy/receive", "p1", hex.EncodeToString(frame)); err != nil {
					t.Fatal(text, err)
				}
				if text, err := ovs.Appctl("revalidator/wait"); err != nil {
					t.Fatal(text, err)
				}
			}
			same := func(when string) {
				t.Helper()
				var dumps [2][]string
				for i, w := range both {
					text, _ := ofctl(t, w.dir, "-OOpenFlow"+version, "dump-flows", bridge)
					dumps[i] = said(counted.ReplaceAllString(text, ""))
				}
				if !slices.Equal(dumps[0], dumps[1]) {
					t.Errorf("%s:\n%s", when, difference(dumps[0], dumps[1]))
				}
			}
			do("add-flow", "cookie=1,priority=5,udp,tp_src=1000,actions=output:2")
			send(1000)
			same("a packet has come")
			do("add-flow", "cookie=2,priority=5,udp,tp_src=1000,actions=drop")
			same("the entry is added again")
			send(1000)
			do("mod-flows", "udp,tp_src=1000,actions=output:2")
			same("the entry is modified")
			send(1000)
			if version != "10" {
				do("add-flow", "cookie=2,priority=5,udp,tp_src=1000,reset_counts,actions=drop")
				same("the entry is added with reset_counts")
				send(1000)
				do("mod-flows", "reset_counts,udp,tp_src=1000,actions=output:2")
				same("the entry is modified with reset_counts")
			}
			learn := "priority=4,udp,tp_src=%,actions=learn(table=3,&cookie=%,priority=9,eth_type=0x800,NXM_OF_IP_SRC[],load:0x%->NXM_NX_REG1[0..15])"
			for no, flag := range map[string]string{"2000": "delete_learned,", "3000": ""} {
				do("add-flow", strings.NewReplacer("%", no, "&", flag).Replace(learn))
			}
			send(2000)
			same("an entry is learned")
			send(3000)
			same("an entry is learned in the place of another")
			do("del-flows", "udp,tp_src=2000")
			do("del-flows", "udp,tp_src=3000")
			same("the entry stays without delete_learned")
			do("add-flow", strings.NewReplacer("%", "2000", "&", "delete_learned,").Replace(learn))
			send(2000)
			do("del-flows", "udp,tp_src=2000")
			same("the entry is deleted with delete_learned")
		})
	}
}
