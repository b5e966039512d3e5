package dataplane_test

import (
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// packetCountersFlows has packets copied, dropped, cut, and collected twice.
const packetCountersFlows = `
	table=0,priority=9,tcp actions=output:4
	table=0,priority=8,ip,nw_frag=no,udp,tp_dst=1 actions=output:3,output:4
	table=0,priority=8,ip,nw_frag=no,udp actions=drop
	table=0,priority=1,ip actions=output:3,ct(table=1,zone=3)
	table=1,ip actions=ct(table=2,zone=4)
	table=2 actions=output:4`

// packetCountersLoad is frames of all sorts, some of which never become whole.
func packetCountersLoad(round int) (all [][]byte) {
	for i := range 8 {
		id := 8*round + i
		all = append(all,
			packettest.UDP4(packettest.Options{SrcPort: uint16(id), DstPort: uint16(i % 2)}),
			piece(id, 400, 400, false), piece(id%64, 0, 400, true), make([]byte, 13))
	}
	return all
}

// TestPacketCountersUnderLoad: while two workers move packets, ports come and go, fragments
// wait in vain and the agent sends, the sums agree whenever somebody looks.
func TestPacketCountersUnderLoad(t *testing.T) {
	mine := map[uint32]*memory.Port{}
	has := map[uint32]ports.Port{}
	for no := uint32(1); no <= 4; no++ {
		mine[no] = memory.New("p", memory.Options{Queue: 128})
		has[no] = mine[no]
	}
	r := run(t, 2, packetCountersFlows, has)
	wants := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	var busy sync.WaitGroup
	stop := make(chan struct{})
	again := func(do func(round int)) {
		busy.Add(1)
		go func() {
			defer busy.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					do(i)
					time.Sleep(50 * time.Microsecond) // others want the processor too
				}
			}
		}()
	}
	for no := uint32(1); no <= 2; no++ {
		again(func(round int) { inject(mine[no], round) })
	}
	for no := uint32(3); no <= 4; no++ {
		one := make([]*packet.Frame, 64)
		again(func(int) { packet.Release(one[:mine[no].Collect(one)]) })
	}
	again(func(int) {
		p := memory.New("p5", memory.Options{Queue: 128})
		wants(r.sw.AddPort(5, p))
		inject(p, 3)
		for i := 0; i < 1000 && p.Stats().RxPackets == 0; i++ {
			time.Sleep(10 * time.Microsecond)
		}
		wants(r.sw.RemovePort(5))
	})
	again(func(int) {
		wants(r.sw.PacketOut(1, []flow.Action{flow.Output{Port: 3}, flow.Output{Port: 4}}, packettest.UDP4(packettest.Options{})))
		wants(r.sw.PacketOut(1, []flow.Action{flow.Resubmit{InPort: flow.PortInPort, Table: 0}}, piece(7, 0, 400, true)))
	})
	again(func(int) { r.sw.Expire(); r.sw.DroppedPackets() })
	looks := 0
	r.until("enough of all sorts", func() bool {
		s := r.sw.PacketCounters()
		r.check(s.Check())
		looks++
		return looks >= 100 && s.Total.Received >= 5000 && s.Total.Copied > 0 && s.Total.Dropped > 0 && s.Gone.Received > 0 && s.Own.Made > 0
	})
	close(stop)
	busy.Wait()
}

// inject gives a port a round of frames, of which it takes what it has room for.
func inject(p *memory.Port, round int) {
	for i, b := range packetCountersLoad(round) {
		f := packet.NewFrame(make([]byte, 2048), nil)
		f.SetBytes(b)
		if i == 0 {
			f = large(packettest.TCP4)
		}
		p.Inject(f)
	}
}
