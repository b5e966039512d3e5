package unixctl

import (
	"bufio"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCall: a command and its parameters reach the daemon, whose answer or error comes back.
func TestCall(t *testing.T) {
	for _, c := range []struct{ reply, answer, err string }{
		{`{"id":0,"result":"3 flows","error":null}`, "3 flows", ""},
		{`{"id":0,"result":null,"error":"no such port"}`, "", "dpctl/show -s: no such port"},
		{`{"id":0,"result":`, "", "dpctl/show -s: unexpected EOF"},
		{``, "", "dpctl/show -s: EOF"},
	} {
		socket := filepath.Join(t.TempDir(), "ctl")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			d, err := l.Accept()
			if err != nil {
				return
			}
			defer d.Close()
			call, err := bufio.NewReader(d).ReadString('\n')
			if want := `{"id":0,"method":"dpctl/show","params":["-s"]}`; err != nil || strings.TrimSpace(call) != want {
				t.Errorf("the daemon got %q, %v; want %s", call, err, want)
			}
			d.Write([]byte(c.reply))
		}()
		answer, err := Call(t.Context(), socket, 5*time.Second, "dpctl/show", "-s")
		if answer != c.answer || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %q, %v; want %q, %q", c.reply, answer, err, c.answer, c.err)
		}
	}
	if _, err := Call(t.Context(), filepath.Join(t.TempDir(), "none"), time.Second, "version"); err == nil {
		t.Error("no daemon, and no error")
	}
}
