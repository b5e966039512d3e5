package testbed

import (
	"bytes"
	"os"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// TestPortChange compares the ports that a generator's program writes with those that Apply writes.
func TestPortChange(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("programs need root")
	}
	for _, n := range []uint32{0, 1, 1<<renewBits - 1, 1 << renewBits, 123_456_789} {
		for _, c := range []PortChange{ChangeNone, ChangePorts, ChangeSwapped, ChangeSource} {
			program := append(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.LoadImm(asm.R8, int64(n), asm.DWord)}, c.Instructions()...)
			p, err := loadGenerator(append(program, asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"), asm.Return()))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			want := KnownFrame(64)
			c.Apply(want, n)
			_, got, err := p.Test(KnownFrame(64))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d: %v, %x, want %x", c, n, err, got, want)
			}
		}
	}
}
