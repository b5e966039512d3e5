package vswitchd

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/nft"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/vswitchd/bridge"
)

// A packet that leaves by an internal port carries its pkt_mark as the mark of the host's packet,
// and vice versa, as with Open vSwitch. Antrea's agent translates the addresses of Egresses by
// marks. A tap shows a mark in the source MAC address (package tap). Rules of nftables copy it to
// the mark and back, one bit each, because no single rule copies a whole number in network order.

// marksTable is the name of two tables: that of family inet for packets from the switch, and that of
// family netdev for packets to it.
const marksTable = "antrail-vswitchd"

// writeMarks replaces the rules by those for the devices of internal ports.
func writeMarks(devices []string) error {
	var s nft.Script
	in, out := s.Table("inet", marksTable), s.Table("netdev", marksTable)
	in.Remove()
	out.Remove()
	if len(devices) > 0 {
		in.Add("marks from the antrail switch")
		in.Set("internal", "ifname")
		shown := tap.MarkMAC(0)
		prefix := fmt.Sprintf("0x%02x%02x", shown[0], shown[1])
		in.Chain("from-switch", "filter", "prerouting", nft.Raw-1)
		in.Rule("from-switch", "iifname != @internal accept")
		in.Rule("from-switch", "@ll,48,16 !=", prefix, "accept")
		in.Rule("from-switch", "meta mark set 0")
		for bit, mark := range bitsOfMark {
			in.Rule("from-switch", fmt.Sprintf("@ll,%d,1 1 meta mark set meta mark or %#x", firstMarkBit+bit, mark))
		}
		out.Add("marks to the antrail switch")
		for n, device := range devices {
			in.Element("internal", strconv.Quote(device))
			addOutward(out, fmt.Sprint("to-switch-", n), device, shown)
		}
	}
	if err := s.Run(); err != nil {
		return fmt.Errorf("nftables tables %s: %w", marksTable, err)
	}
	return nil
}

// addOutward adds the rules that write the marks into packets from the host to a device.
func addOutward(t nft.Table, chain, device string, unmarked [6]byte) {
	t.Chain(chain, "filter", "egress device "+strconv.Quote(device), nft.Filter)
	t.Rule(chain, "ether type != { ip, ip6 } accept")
	t.Rule(chain, "meta mark 0 accept")
	t.Rule(chain, "ether saddr set", net.HardwareAddr(unmarked[:]))
	for bit, mark := range bitsOfMark {
		t.Rule(chain, fmt.Sprintf("meta mark and %#x != 0 @ll,%d,1 set 1", mark, firstMarkBit+bit))
	}
}

// firstMarkBit is the offset in bits of the mark in a frame: behind the destination and two bytes.
const firstMarkBit = 64

// bitsOfMark are the bits of a mark, in network order.
var bitsOfMark = func() (all [32]uint32) {
	for i := range all {
		all[i] = 1 << (31 - i)
	}
	return all
}()

// internalDevices are the devices of the internal ports, sorted. b.mu is held.
func (b *bridges) internalDevices() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(b.ports)) {
		p := b.ports[name]
		if spec, err := specOf(&p); err == nil && spec.Driver == door.DriverTap {
			names = append(names, name)
		}
	}
	return names
}

// updateMarksFor updates the rules if a changed port is an internal one. b.mu is held.
func (b *bridges) updateMarksFor(changed *bridge.Port) {
	if spec, err := specOf(changed); err != nil || spec.Driver != door.DriverTap {
		return
	}
	b.updateMarks()
}

// updateMarks writes the rules for all internal ports. Without nftables, it logs that packets have
// no marks. b.mu is held.
func (b *bridges) updateMarks() {
	if err := writeMarks(b.internalDevices()); err != nil {
		b.log.Warn("packets of internal ports have no marks on the host's side", "error", err)
	}
}
