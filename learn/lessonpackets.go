package learn

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
)

// A file of packets has one packet on each line: its name, and its fields as a match. An
// answer to another packet begins with reply(NAME): it has NAME's addresses and ports, as
// NAME left, swapped. A packet that enters on another Node than the first begins with
// @NODE.
//
//	syn     in_port="client-a",tcp,nw_src=10.10.0.26,…
//	synack  reply(syn),tcp,tcp_flags=syn|ack
//	far     @node-b in_port="client-b",…

// aPacket is a line of the file.
type aPacket struct {
	name  string
	node  string // "" for the first
	reply string // the packet that it answers
	flow  string
	where string // file:line
}

// parsePackets reads a file of packets.
func parsePackets(f *Files) ([]aPacket, error) {
	var all []aPacket
	seen := map[string]bool{}
	for i, text := range strings.Split(f.Text[packetsFile], "\n") {
		text, _, _ = strings.Cut(text, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		p := aPacket{name: words[0], where: fmt.Sprintf("%s:%d", f.path(packetsFile), i+1)}
		words = words[1:]
		if len(words) > 0 && strings.HasPrefix(words[0], "@") {
			p.node, words = words[0][1:], words[1:]
		}
		p.flow = strings.Join(words, " ")
		if rest, ok := strings.CutPrefix(p.flow, "reply("); ok {
			name, rest, closed := strings.Cut(rest, ")")
			if !closed || !seen[name] {
				return nil, fmt.Errorf("%s: reply(NAME) needs a packet of an earlier line; %q is not one", p.where, name)
			}
			p.reply, p.flow = name, strings.TrimPrefix(rest, ",")
		}
		if p.flow == "" && p.reply == "" {
			return nil, fmt.Errorf("%s: a line is a name and what the packet is: syn in_port=\"client-a\",tcp,…", p.where)
		}
		if isEvent(p.name) {
			return nil, fmt.Errorf("%s: a packet cannot be called %s: send uses that word for an event", p.where, p.name)
		}
		if seen[p.name] {
			return nil, fmt.Errorf("%s: there is a packet %s already", p.where, p.name)
		}
		seen[p.name] = true
		all = append(all, p)
	}
	return all, nil
}

// findPacket is the packet of a name.
func findPacket(all []aPacket, name string) (aPacket, error) {
	var names []string
	for _, p := range all {
		if p.name == name {
			return p, nil
		}
		names = append(names, p.name)
	}
	return aPacket{}, fmt.Errorf("there is no packet %q%s; there are %s", name, flow.Suggest(name, append(names, eventRestart, eventForget)), strings.Join(names, ", "))
}

// compose makes the frame of a flow, and the port that it enters by. If over is not nil,
// the flow changes that frame's fields. above is added to the client port.
func compose(text string, names *flow.Names, over *flow.Key, above int) (frame []byte, inPort uint32, err error) {
	m, err := parse.Match(text, names)
	if err != nil {
		return nil, 0, err
	}
	var key flow.Key
	if over != nil {
		key = *over
	} else {
		flow.AssumeFirst(&m)
	}
	for i := range key {
		key[i] = key[i]&^m.Mask[i] | m.Value[i]
	}
	if client := flow.FieldByID(flow.TCPSrc); above > 0 {
		client.Put(&key, flow.Value{Lo: client.Get(&key).Lo + uint64(above)}, flow.Ones(client.Bits))
	}
	if key.InPort() == 0 {
		return nil, 0, fmt.Errorf("%q has no in_port: a packet needs a port to enter by", text)
	}
	return flow.Compose(&key), key.InPort(), nil
}

// turned is the key of an answer to a frame.
func turned(frame []byte) *flow.Key {
	k := keyOf(frame)
	for _, pair := range [][2]flow.FieldID{{flow.EthSrc, flow.EthDst}, {flow.IPSrc, flow.IPDst}, {flow.IPv6Src, flow.IPv6Dst}, {flow.TCPSrc, flow.TCPDst}} {
		a, b := flow.FieldByID(pair[0]), flow.FieldByID(pair[1])
		if pair[0] == flow.TCPSrc && isICMP(k) {
			continue
		}
		va, vb := a.Get(k), b.Get(k)
		a.Put(k, vb, flow.Ones(a.Bits))
		b.Put(k, va, flow.Ones(b.Bits))
	}
	ttl := flow.FieldByID(flow.IPTTL)
	if !ttl.Get(k).IsZero() {
		ttl.Put(k, flow.Value{Lo: 64}, flow.Ones(ttl.Bits))
	}
	return k
}

// isICMP says whether a packet has an ICMP type in the place of ports.
func isICMP(k *flow.Key) bool {
	proto := flow.FieldByID(flow.IPProto).Get(k).Lo
	return proto == packet.ProtoICMP || proto == packet.ProtoICMPv6
}
