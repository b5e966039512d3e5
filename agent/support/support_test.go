package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet/packettest"
)

// withDrop answers like an agent that has dropped one packet, and knows whether it is well.
type withDrop struct{ next *api.Client }

func (d withDrop) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	switch r.URL.Path {
	case "/drops/last":
		frame := packettest.TCP4(packettest.Options{
			EthSrc: [6]byte{0x5e, 0xb5, 0xe3, 0xa6, 0x90, 0xb7}, EthDst: [6]byte{0xba, 0x5e, 0xd1, 0x55, 0xaa, 0xc0},
			Src: packettest.Addr("10.10.0.26"), Dst: packettest.Addr("10.10.0.25"), DstPort: 3306,
		})
		fmt.Fprintf(w, `{"packets": [{"no": 7, "time": "2026-01-02T03:04:05Z", "packets": 1, "port": {"ofPort": 36, "name": "client-a", "pod": "default/client-a"}, "reason": "table_drop",
			"source": "default/client-a", "packet": "tcp 10.10.0.26:40000 > 10.10.0.25:3306", "frame": "%s"}]}`, hex.EncodeToString(frame))
	case "/healthz", "/readyz":
		fmt.Fprintln(w, "ok")
	default:
		d.next.Proxy().ServeHTTP(w, r)
	}
	return w.Result(), nil
}

// logLines are of a Pod that is gone, and of one that is there.
const logLines = `time=2026-01-02T03:04:05Z level=INFO msg="pod attached" pod=shop/checkout-5d9c ip=10.10.0.99 mac=36:48:21:a2:9d:b4 link=web-a
time=2026-01-02T03:04:06Z level=WARN msg="Node node-b does not answer" address=192.168.77.103 gateway=fd00:10:10::1
`

const configuration = `nodeName: node-a
podCIDRs: [10.10.0.0/24, "fd00:10:10::/64"]
ipsecPSK: correct-horse
kubernetes:
  token: "abcdef"
`

// archived is an archive of node-a of the sample cluster: its files by name, and all of its text.
func archived(t *testing.T, redact bool) (files map[string]string, all string) {
	t.Helper()
	client, err := answer.Offline(pipeline.Manifests{Path: "../../examples/web-app", Node: "node-a"}, config.DefaultTunnel)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"agent.log": logLines, "agent.yaml": configuration} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	missing, err := Write(t.Context(), &b, Options{
		Client: api.NewClientBy("test", withDrop{client}), Version: "antrail test", Config: filepath.Join(dir, "agent.yaml"), Log: filepath.Join(dir, "agent.log"),
		Drops: 10, Redact: redact, Now: time.Unix(1_800_000_000, 0),
	})
	if err != nil || missing != 1 { // the watches of an API that is not there
		t.Fatalf("%d missing, %v", missing, err)
	}
	unzipped, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		text, err2 := io.ReadAll(r)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		files[strings.TrimPrefix(h.Name, directory+"/")] = string(text)
		all += h.Name + "\n" + string(text)
	}
	return files, all
}

// TestArchive has what helps, and no secret.
func TestArchive(t *testing.T) {
	files, all := archived(t, false)
	for name, want := range map[string]string{
		"versions.txt": "antrail test\n", "config.yaml": "nodeName: node-a", "agent.log": "pod attached", "errors.txt": "state/watches.json: ",
		"state/pods.json": `"object": "Pod/default/client-a"`, "state/endpoints.json": `"weight": 100`, "dumps/flows.txt": "table=ServiceLB", "dumps/groups.txt": "group_id=",
		"drops/last.json": `"reason": "table_drop"`, "drops/trace-7.txt": "# dropped at 2026-01-02T03:04:05Z: table_drop, tcp", "metrics.txt": "antrail_", "state/healthz.txt": "ok",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%.600s", name, want, files[name])
		}
	}
	if !strings.Contains(files["drops/trace-7.txt"], "IngressDefaultRule") && !strings.Contains(files["drops/trace-7.txt"], "IngressRule") {
		t.Errorf("the trace does not come to the policies:\n%s", files["drops/trace-7.txt"])
	}
	for _, secret := range []string{"correct-horse", "abcdef"} {
		if strings.Contains(all, secret) {
			t.Errorf("the archive has the secret %q", secret)
		}
	}
}

// TestRedacted: no name, address or MAC address of the plain archive is in the redacted one, in no
// spelling, and what replaces one is the same everywhere.
func TestRedacted(t *testing.T) {
	_, plain := archived(t, false)
	files, all := archived(t, true)
	originals := []string{"checkout-5d9c", "shop", "node-a", "node-b", "web-a-only", "sample-clusterip", "db-from-web", "reg12=0xfd000010"}
	for _, pod := range []string{"client", "web", "db"} {
		originals = append(originals, pod+"-a", pod+"-b")
	}
	for _, text := range ipv4Text.FindAllString(plain, -1) {
		host, _, _ := strings.Cut(text, "/")
		if a, err := netip.ParseAddr(host); err == nil && a.IsPrivate() {
			originals = append(originals, host)
			if a.As4()[3] != 0 {
				originals = append(originals, hexText(a), fmt.Sprintf("%x", a.AsSlice()))
			}
		}
	}
	for _, text := range ipv6Text.FindAllString(plain, -1) {
		host, _, _ := strings.Cut(text, "/")
		if a, err := netip.ParseAddr(host); err == nil && a.IsPrivate() {
			originals = append(originals, host)
		}
	}
	for _, text := range macText.FindAllString(plain, -1) {
		if a, err := net.ParseMAC(text); err == nil && a.String() == text && (mapping{}).mac(a).String() != text {
			originals = append(originals, text)
		}
	}
	if len(originals) < 100 {
		t.Fatalf("only %d names and addresses to look for", len(originals))
	}
	for _, o := range originals {
		if i := strings.Index(all, o); i >= 0 && regexp.MustCompile(`(^|[^0-9a-zA-Z.:])`+regexp.QuoteMeta(o)+`($|[^0-9a-zA-Z.:])`).MatchString(all) {
			t.Errorf("the redacted archive has %q: …%s…", o, all[max(0, i-60):min(len(all), i+60)])
		}
	}
	pod := regexp.MustCompile(`"object": "Pod/default/(pod-\d+)"`).FindStringSubmatch(files["state/pods.json"])
	if pod == nil || !strings.Contains(files["dumps/flows.txt"], pod[1]) && !strings.Contains(files["dumps/ports.json"], pod[1]) {
		t.Errorf("the Pod's replacement is not the same in a dump: %q", pod)
	}
	for name, want := range map[string]string{"dumps/flows.txt": "table=ServiceLB", "state/pods.json": `"state": "installed"`, "drops/last.json": `"frame": ""`} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%.600s", name, want, files[name])
		}
	}
}

// TestMapping: prefixes stay prefixes, well-known addresses stay, and another key gives others.
func TestMapping(t *testing.T) {
	m := mapping{[]byte("key")}
	network, inside, outside := netip.MustParseAddr("10.10.0.0"), netip.MustParseAddr("10.10.0.24"), netip.MustParseAddr("10.10.1.24")
	p := netip.PrefixFrom(m.addr(network, 24), 24)
	if p.Masked() != p || !p.Contains(m.addr(inside, 32)) || p.Contains(m.addr(outside, 32)) {
		t.Errorf("%v, %v, %v", p, m.addr(inside, 32), m.addr(outside, 32))
	}
	if !m.addr(inside, 32).IsPrivate() {
		t.Errorf("%v is not private", m.addr(inside, 32))
	}
	if m.addr(inside, 32) == (mapping{[]byte("other")}).addr(inside, 32) {
		t.Error("the key makes no difference")
	}
	for key := range byte(64) { // a short prefix has few replacements: none of them is itself
		services := netip.MustParseAddr("10.96.0.0")
		if (mapping{[]byte{key}}).addr(services, 12) == services {
			t.Errorf("key %d leaves 10.96.0.0/12 as it is", key)
		}
	}
	for _, same := range []string{"169.254.0.253", "127.0.0.1", "255.255.255.0", "0.0.0.0", "::", "::1", "ff02::1"} {
		if a := netip.MustParseAddr(same); m.addr(a, a.BitLen()) != a {
			t.Errorf("%s is replaced by %s", same, m.addr(a, a.BitLen()))
		}
	}
	if a := m.addr(netip.MustParseAddr("fe80::1234"), 128); !linkLocal.Contains(a) || a.String() == "fe80::1234" {
		t.Errorf("fe80::1234 is replaced by %s", a)
	}
}
