package offload

import "github.com/cilium/ebpf/asm"

// The program at tc egress of the gateway sends packets of the Node's own stack to pods and other
// Nodes. Other packets go on to the gateway's port. One program decides and rewrites, because no
// socket gets a frame before it.
//
// It runs where the stack sends, with softirqs off, so no other packet of the processor comes in
// between (settle.go).
//
// In the other direction, the programs of pods' ports and of the underlay let a packet enter the
// stack by the gateway (ports.OffloadInto). So the Node's routes, its firewall and its connection
// tracking apply in both directions.

// gatewayCode is the program's instructions; link as in filterCode.
func gatewayCode(m *maps, link int16) asm.Instructions {
	c := &code{}
	c.take(m, link)
	c.add(asm.LoadMem(asm.R7, asm.R8, ofParts, asm.Word), asm.JEq.Imm(asm.R7, 0, "send"))
	c.rewrite()
	c.sendOrDrop(m)
	c.add(asm.Mov.Imm(asm.R0, tcxDrop), asm.Return())
	c.keep()
	return c.Instructions
}
