package alert_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/leaks"
)

func TestMain(m *testing.M) {
	leaks.Main(m)
}

type desk struct {
	*alert.Alerts
	d   *db.DB
	reg *prometheus.Registry
	mu  sync.Mutex
	log bytes.Buffer
}

func (k *desk) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log.Write(p)
}

func (k *desk) logged() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.log.String()
}

func open(t *testing.T, d *db.DB) *desk {
	t.Helper()
	k := &desk{d: d, reg: prometheus.NewRegistry()}
	var err error
	if k.Alerts, err = alert.New(d, slog.New(slog.NewTextHandler(k, nil)), k.reg); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *desk) list(t *testing.T, f alert.Filter) (all []alert.Alert) {
	t.Helper()
	err := k.d.Read(t.Context(), func(r db.Reader) (err error) {
		all, err = alert.List(r, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (k *desk) counted(t *testing.T, name alert.Name) float64 {
	t.Helper()
	families, err := k.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "tributary_alerts_raised_total" && label(m) == string(name) {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric for %s", name)
	return 0
}

func label(m *dto.Metric) string { return m.GetLabel()[0].GetValue() }

func TestRaisingAnOpenAlertAgainCountsIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		for i := range 3 {
			if err := k.Raise(t.Context(), alert.ClockSkew, "ES", fmt.Sprintf("skew %d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Raise(t.Context(), alert.ClockSkew, "PL", "another subject"); err != nil {
			t.Fatal(err)
		}
		all := k.list(t, alert.Filter{Open: true, Name: alert.ClockSkew})
		if len(all) != 2 || all[0].Subject != "PL" || all[1].Times != 3 || all[1].Message != "skew 2" {
			t.Errorf("got %+v", all)
		}
		if all[1].LastAt.Before(all[1].FirstAt) || all[1].FirstAt.IsZero() {
			t.Errorf("first %s, last %s", all[1].FirstAt, all[1].LastAt)
		}
		if n := k.counted(t, alert.ClockSkew); n != 4 {
			t.Errorf("the metric counts %v", n)
		}
		if n := strings.Count(k.logged(), "alert=clock_skew"); n != 4 {
			t.Errorf("%d log lines:\n%s", n, k.logged())
		}
		if got := k.list(t, alert.Filter{Limit: 1}); len(got) != 1 {
			t.Errorf("limit 1 gives %d", len(got))
		}
	})
}

func TestRaisedTogetherEachCounts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				if err := k.Raise(context.Background(), alert.ChainMismatch, "B1", "x"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if all := k.list(t, alert.Filter{}); len(all) != 1 || all[0].Times != 40 {
			t.Errorf("got %+v", all)
		}
	})
}

func TestAnAcknowledgedAlertIsClosedAndOpensAnew(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		raise := func() {
			if err := k.Raise(t.Context(), alert.WebhookDiscarded, "acme", "gone"); err != nil {
				t.Fatal(err)
			}
		}
		ack := func(id string) error {
			return d.Write(t.Context(), func(tx *db.Tx) error { return alert.Acknowledge(tx, id, "ana") })
		}
		raise()
		first := k.list(t, alert.Filter{Open: true})[0]
		if err := ack(first.ID); err != nil {
			t.Fatal(err)
		}
		if all := k.list(t, alert.Filter{Open: true}); len(all) != 0 {
			t.Errorf("still open: %+v", all)
		}
		raise()
		all := k.list(t, alert.Filter{})
		if len(all) != 2 || all[0].Times != 1 || !all[0].AcknowledgedAt.IsZero() || all[1].AcknowledgedBy != "ana" ||
			all[1].AcknowledgedAt.IsZero() {
			t.Errorf("got %+v", all)
		}
		for _, id := range []string{first.ID, "nobody"} {
			if err := ack(id); fault.KindOf(err) != fault.NotFound {
				t.Errorf("acknowledge %q: %v", id, err)
			}
		}
		for _, want := range []int{1, 0} {
			if n, err := k.Forget(t.Context(), d.Now().Add(time.Hour)); n != want || err != nil {
				t.Fatalf("forgot %d alerts, want %d: %v", n, want, err)
			}
		}
		if all := k.list(t, alert.Filter{}); len(all) != 1 || all[0].ID == first.ID {
			t.Errorf("after Forget: %+v", all)
		}
	})
}

func TestAnAlertOfAWriteThatFailsIsNeverTold(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		stop := errors.New("stop")
		raise := func(end error) error {
			return d.Write(t.Context(), func(tx *db.Tx) error {
				return errors.Join(k.RaiseIn(tx, alert.OperationQuarantined, "op1", "three crashes"), end)
			})
		}
		if err := raise(stop); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if n := k.counted(t, alert.OperationQuarantined); n != 0 || k.logged() != "" || len(k.list(t, alert.Filter{})) != 0 {
			t.Errorf("told although nothing was stored: metric %v, log %q", n, k.logged())
		}
		if err := raise(nil); err != nil {
			t.Fatal(err)
		}
		if n := k.counted(t, alert.OperationQuarantined); n != 1 ||
			!strings.Contains(k.logged(), "alert=operation_quarantined subject=op1") {
			t.Errorf("not told: metric %v, log %q", n, k.logged())
		}
	})
}

func TestAnAlertIsToldWhenStorageIsGone(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), db.Config{URL: dbtest.SQLiteURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	k := open(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := k.Raise(t.Context(), alert.StorageFailed, "node", "no disk"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if n := k.counted(t, alert.StorageFailed); n != 1 || !strings.Contains(k.logged(), "alert=storage_failed") {
		t.Errorf("metric %v, log %q", n, k.logged())
	}
}

func TestANameOutsideTheListIsRefused(t *testing.T) {
	t.Parallel()
	k := open(t, dbtest.SQLite(t))
	if err := k.Raise(t.Context(), "surprise", "x", "y"); err == nil {
		t.Error("accepted")
	}
	if !strings.Contains(k.logged(), "alert=surprise") {
		t.Errorf("not even logged: %q", k.logged())
	}
}

func TestTextsAreCutToFitAndNeverRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		for _, text := range []string{
			strings.Repeat("a", alert.MessageBytesMax), strings.Repeat("a", alert.MessageBytesMax+1),
			strings.Repeat("é", alert.MessageBytesMax), "nul \x00 and broken \xff\xfe", "",
		} {
			if err := k.Raise(t.Context(), alert.JobDiscarded, text, text); err != nil {
				t.Fatal(err)
			}
			got := k.list(t, alert.Filter{})[0]
			if len(got.Message) > alert.MessageBytesMax || len(got.Subject) > alert.SubjectBytesMax ||
				!utf8.ValidString(got.Message) {
				t.Errorf("stored %d and %d bytes", len(got.Subject), len(got.Message))
			}
			if cut := len(text) > alert.MessageBytesMax; cut != strings.HasSuffix(got.Message, "…") {
				t.Errorf("%d bytes: cut mark is wrong in %q", len(text), got.Message[max(0, len(got.Message)-10):])
			}
		}
	})
}

func TestEveryNameHasAMeaningAndStartsAtZero(t *testing.T) {
	t.Parallel()
	k := open(t, dbtest.SQLite(t))
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				declared[name] = true
			}
		}
		return true
	})
	listed := map[string]bool{}
	for _, m := range alert.Meanings() {
		if listed[string(m.Name)] {
			t.Errorf("%s is listed twice", m.Name)
		}
		listed[string(m.Name)] = true
		if m.Title == "" || m.Meaning == "" || m.Action == "" || m.Subject == "" {
			t.Errorf("%s says nothing", m.Name)
		}
		if n := k.counted(t, m.Name); n != 0 {
			t.Errorf("%s starts at %v", m.Name, n)
		}
	}
	for name := range declared {
		if !listed[name] {
			t.Errorf("%s has no meaning", name)
		}
	}
	if len(declared) != len(listed) || len(declared) < 20 {
		t.Errorf("%d declared, %d listed", len(declared), len(listed))
	}
}
