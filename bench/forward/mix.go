package forward

import (
	"github.com/antrail/antrail/bench/testbed"
	"github.com/cilium/ebpf/asm"
)

// mixes are the frames that are forwarded. IMIX is small, middle and full frames, 7 : 4 : 1. Sizes are
// without the Ethernet checksum of 4 bytes.
var mixes = []mix{
	{"64 bytes", []sizeShare{{64, 1}}},
	{"512 bytes", []sizeShare{{512, 1}}},
	{"1400 bytes", []sizeShare{{1400, 1}}},
	{"IMIX", []sizeShare{{1464, 1}, {590, 4}, {60, 7}}},
}

// mix is frames of some sizes.
type mix struct {
	name  string
	sizes []sizeShare // the largest first
}

// sizeShare is a size, and how many of the mix's frames have it, in proportion to the others.
type sizeShare struct{ size, share int }

// frame is the largest frame of the mix. Its headers are those of the smallest frame, so what follows in
// larger ones is padding.
func (m *mix) frame() []byte {
	frame := make([]byte, m.sizes[0].size)
	copy(frame, testbed.KnownFrame(m.sizes[len(m.sizes)-1].size))
	return frame
}

// instructions shorten a frame to its size, by its number in R8.
func (m *mix) instructions() (list asm.Instructions) {
	if len(m.sizes) == 1 {
		return nil
	}
	lot := 0
	for _, s := range m.sizes {
		lot += s.share
	}
	list = asm.Instructions{asm.Mod.Imm(asm.R8, int32(lot)), asm.Mov.Imm(asm.R2, 0)}
	before := 0
	for i, s := range m.sizes[:len(m.sizes)-1] {
		before += s.share
		list = append(list,
			asm.JLT.Imm(asm.R8, int32(before), "cut"),
			asm.Mov.Imm(asm.R2, int32(m.sizes[i+1].size-m.sizes[0].size)))
	}
	return append(list,
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("cut"),
		asm.FnXdpAdjustTail.Call())
}
