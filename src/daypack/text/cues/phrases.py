"""Cue phrases, a table per language: words that tell what a sentence is for.

    decisions 0.7: agreed, instead of, rather than, …

A line begins with what its phrases tell and how far they may be believed, from 0 to 1. Phrases are compared word by
word, whatever their case; `^` before a phrase: only at the beginning of a sentence.
"""

from typing import Literal

from daypack.text.english import DONE_VERBS

# Beside the sections: a request (of the user), an order (an imperative that stays in force), a question or
# supposition, talk of the writer about its own next step, pleasantries, work that is done, and a "not".
Kind = Literal[
    "decisions", "facts", "pending", "errors", "request", "order", "doubt", "talk", "chatter", "done", "denied"
]

ENGLISH = f"""
decisions 1.0: we will use, we'll use, i will use, let's use, let us use, let's go with, let's stick, let's not,
    go with, going with, went with, stick with, sticking with, stick to, decided, decide on, we agreed, agreed to,
    agreed on, i agree to, chose, have chosen, i've chosen, we've chosen, settled on, settle on, from now on,
    opted for, opt for, will be called, is the plan, we are using, we're switching, we'll keep, we will keep,
    i prefer, we prefer, must not, must never, should never, must always, should always, we picked, rule is,
    final answer, i've committed to
decisions 0.7: instead of, rather than, prefer, prefers, no longer use, only use, we will, we'll, switch to,
    switched to, switching to, must, please don't, please do not, but don't, but do not, and don't, and do not,
    so don't, never use, i want you to, i don't want, we don't want, do not want, is required, are required,
    out of scope, not allowed, is forbidden, by default, at all times, in favour of, in favor of, i'd rather,
    we'd rather, shall, ruled out, not an option, let's do, let's keep, let's have, i will go, decision,
    need to use, needs to use, i'll use, should use, don't need, doesn't need, no need for
decisions 0.4: make sure, let's, should, keep, avoid, i want, not needed, no need, the approach, the plan,
    i'm going to, i'd like, we want
order 1.0: ^don't, ^do not, ^never, ^always, ^from now on, ^please always, ^please never, ^please don't,
    ^please use, ^make sure, ^be sure, ^avoid, ^prefer, ^stick, ^only use, ^only
order 0.8: ^use, ^keep, ^leave, ^call it, ^name it, ^call the, ^name the, ^skip, ^drop, ^treat, ^put, ^follow,
    ^ignore, ^remember, ^note that, ^ensure, ^stay, ^limit, ^respect, ^it must, ^we must, ^you must, ^they must
facts 1.0: root cause, turns out, turned out, the bug is, the bug was, the problem is, the problem was,
    the issue is, the issue was, caused by, the cause, the reason, because of, due to, my name is, name is,
    is called, i live in, we live in, lives in, i'm from, i am from, i work as, i work at, i work for, i work in,
    is located, located in, was born, my birthday, allergic to, found that, discovered, i found that, confirmed,
    the culprit, fixed by, moved to, moved from, graduated, got married, is deprecated, years old, key finding
facts 0.7: because, i found, we found, is on, are on, was created, was added, were added, which means, means that,
    that's why, that is why, so that's, is in, is at, are in, lives at, is stored, are stored, version, port,
    runs on, running on, listens on, depends on, requires, returns, defaults to, default is, expects, supports,
    doesn't support, does not support, doesn't exist, does not exist, not supported, is missing, no longer exists,
    contains, consists of, tests pass, test pass, tests passed, failures, fails, failing, failed, i'm using,
    i am using, we use, we're using, we have, i've been, i have a, i have an, i have two, i have three, deadline,
    due on, is due, my wife, my husband, my partner, my son, my daughter, my kids, my children, my mom, my mum,
    my dad, my mother, my father, my brother, my sister, my family, my friend, my dog, my cat, my boss, my team,
    my company, my job, my budget, my project, my goal, my app, my code, our project, our team, our api, our code,
    budget of, limit is, limit of, i own, i bought, i started, i joined, i met, i went, i finished, i visited,
    i signed, i made, i adopted, last year, last month, last week, yesterday, years ago, is owned by, is used by,
    are used by, is defined, is generated, is tracked, is read, is written, is configured, is called by,
    points to, is set to, the same as, only works, won't work, can't access, cannot access, exit code,
    already has, has no, have no, generates, auto generates, unused, is enabled, is disabled, we're on,
    my favourite, my favorite
facts 0.4: is, was, were, are, has, have, had, there are, there is, i'm, i am, my, our, uses, since, currently,
    added, created, updated, removed, extracted, pushed, committed, implemented, now
pending 1.0: todo, to do list, still need, still needs, still to do, still to be, still have to, still has to,
    still missing, still open, remains to, left to do, is left, not yet, not done yet, isn't done, follow up,
    follow ups, don't forget, do not forget, remember to, fixme, to be done, yet to, is pending, are pending,
    pending, outstanding, open question, open questions, open issue, open issues, blocked on, blocked by,
    waiting for, waiting on, for later, unresolved, unfinished, action items, to be decided, tbd, not implemented,
    not started, still broken, still fails, still failing, still does not, still doesn't, nice to have,
    please remind me
pending 0.9: next step, next steps, next up, up next
pending 0.7: remaining, later, afterwards, will need to, we need to, i need to, you need to, needs to, need to,
    we have to, i have to, we should also, should also, tomorrow, next week, next month, next time, plan to,
    planning to, plans to, once that, after that, when that is done, then we, deadline is, by friday, by monday,
    by tomorrow, want to add, looking to, i'm going to, we're going to, gonna, i still, we still, coming up, soon,
    upcoming, hope to, hoping to, hasn't been, haven't been
pending 0.3: next, then, will, going to, want to, i'd like to, would like to, trying to
errors 0.7: error, exception, traceback, failed, failure, fails, crash, crashed, broke, broken, wrong, denied,
    timeout
request 1.0: ^please, can you, could you, would you, will you, i need you, i want you, i'd like you, help me,
    i need help, i need to, we need to, i want to, i'd like to, i would like, i'm trying to, i am trying to,
    i'm working on, we're working on, i am working on, ^work on, your task, the task is, the goal is, ^task,
    let's, how do i, how can i, how should i, how would i, what's the best, what is the best,
    i'm looking, i'm planning, i need
request 0.8: ^implement, ^fix, ^add, ^create, ^write, ^build, ^refactor, ^update, ^remove, ^delete, ^make,
    ^change, ^improve, ^investigate, ^find, ^check, ^run, ^test, ^deploy, ^set, ^configure, ^migrate, ^port,
    ^convert, ^rename, ^move, ^review, ^explain, ^summarise, ^summarize, ^analyse, ^analyze, ^debug, ^optimise,
    ^optimize, ^design, ^draft, ^plan, ^prepare, ^translate, ^research, ^search, ^websearch, ^show, ^list, ^start,
    ^install, ^upgrade, ^document, ^generate, ^read, ^extract, ^solve, ^give, ^tell, ^compare, ^suggest, ^open,
    ^look, ^try, ^use, ^replace, ^clean, ^finish, ^support, ^integrate, ^release, ^work, ^do, ^get, ^put, ^merge,
    ^split, ^send, ^reply, ^book, ^order, ^buy, ^recommend
request 0.4: task, solving, work on, what, how, why, which, where, when, does, should, want, need
doubt 1.0: should we, should i, could we, can we, do we, shall we, what if, would it, would you, do you, are you,
    could you, can you, would we, is it, we could, you could, i could, one could, one option, another option,
    another way, alternatively, alternative, suppose, imagine, for example, e g, for instance, hypothetically,
    you might, we might, it might, i might, you may want, you can also, if you want, if you'd like, if you need,
    feel free, not sure if, not sure whether, wondering, let me know, thinking about, think about, thinking of,
    considering, whether to, either, options are, two options, a few options, torn between, deciding between
doubt 0.5: might, maybe, perhaps, possibly, probably, could, if we, if you, consider, seems, appears, suggests,
    looks like, i think, i guess, may
chatter 1.0: keep going, keep pushing, keep chasing, our dreams, your dreams, my dreams, their dreams, come true,
    believe in yourself, never quit, never give up, stay positive, your support, means a lot, keep you posted,
    i'm lucky, must have been, you must really, you must be, you must have, you must feel, must be scary, a must,
    each other, can you believe, let's go for it, keep it, must be so, must be hard, must be tough, must feel,
    must be a, must be really, i love that, i love how, love that you, so proud, proud of you, good luck,
    can't wait, congrats, congratulations, sounds like, sounds great, sounds awesome, sounds fun, glad to hear,
    so glad, glad you, happy for you, happy to hear, take care, have fun, have a great, keep it up, keep up,
    no worries, no problem, you're welcome, thanks for, thank you for, thank you so, way to go, well done,
    great job, nice work, great question, good question, that's great, that's awesome, that's amazing, that's so,
    how are you, hope you, talk soon, see you, good to see, nice to, don't worry, you got this, i appreciate,
    awesome that, keep me posted, what a, let's keep motivating, i'm here for you, you're doing, i bet,
    i can imagine, remind me to appreciate, always remind me, hope your, i'll let you know, must have felt,
    must have taken, must be such, glad you've, we'll keep doing our, help me take
chatter 0.6: wow, yay, awesome, amazing, lovely, fantastic, incredible, inspiring, inspirational, excited,
    thrilled
talk 1.0: let me, ^now that, ^before submitting, ^to ensure, ^to be certain, ^to make sure, we can submit,
    we can clean, we can proceed, will attempt, i will now, i will also, we can just, ^i'll, ^i will, ^now i'll,
    ^now i will, ^now let's, ^let's see, ^let's start, ^let's look, ^let's check, ^let's run, ^let's open,
    ^let's try, ^let's create, ^let's proceed, ^let's find, ^let's edit, ^let's explore, ^let's break,
    ^let's dive, ^let's review, ^let's go through, ^let's enhance, ^first let's, let's also, i should, ^i need to,
    ^now i need, ^i can help, ^happy to, here's, here is, here are, below is, below are, as follows,
    the following, i understand, you're right, i apologize, i apologise, sorry, hope this helps, i have the full,
    i have a clear, have a complete picture, i have full context, full picture, ^now update, ^now add,
    ^now create, ^now the, ^now run, ^now fix, ^now remove, ^now write, ^now check, ^now stage, ^now implement,
    ^now rewrite, ^now also, ^now commit, ^now push, ^now close, ^now read, ^now test, ^now apply, ^starting with,
    ^continuing with, ^looking at, ^time to, ^moving on, ^first i'll, ^next i'll, ^then i'll, ^we can now,
    ^as an ai, ^in summary, ^in conclusion, ^overall, ^by following, ^this approach, ^this will help,
    ^these steps, would you like me, do you want me, ^now it's, ^then we can, ^next let's, ^now we, ^first we,
    ^close the, ^run full, i will correct, i will carefully, ^to address, ^to begin, ^to handle, ^to manage,
    ^to achieve, ^to implement
talk 0.5: ^now, ^first, ^great, ^good, ^perfect, ^expected, ^sure, ^certainly, ^absolutely, ^okay, ^thanks,
    ^thank you
done 1.0: {", ".join(DONE_VERBS)}, committed, pushed, passes, passing, pass, works now, sorted,
    already, solved, extracted, verified
denied 1.0: not, no, never, don't, doesn't, didn't, isn't, aren't, wasn't, weren't, won't, can't, cannot,
    couldn't, shouldn't, wouldn't, hasn't, haven't, hadn't, mustn't, nor, neither, without, nothing, none, nobody,
    dont, cant, doesnt, wont, stop
"""

GERMAN = """
decisions 1.0: wir nehmen, wir verwenden, wir nutzen, wir bleiben bei, entschieden, entscheidung, beschlossen,
    vereinbart, ab jetzt, ab sofort, wir haben uns auf, nehmen wir, verwenden wir, lass uns, lassen wir,
    festgelegt, ich bevorzuge, darf nicht, auf keinen fall, auf jeden fall
decisions 0.7: statt, anstatt, anstelle, bevorzugen, lieber, muss, müssen, niemals, nie, immer, wir werden, soll,
    sollen
order 0.9: ^nimm, ^verwende, ^benutze, ^nutze, ^bitte nicht, ^niemals, ^nie, ^immer, ^kein, ^keine, ^achte,
    ^behalte
facts 1.0: ursache, liegt an, lag an, stellt sich heraus, stellte sich heraus, der fehler ist, das problem ist,
    grund, wegen, herausgefunden, ich heiße, mein name, ich wohne, ich arbeite, ich komme aus, geboren, bestätigt
facts 0.7: weil, da die, liegt in, liegt unter, läuft auf, version, port, benötigt, enthält, frist, mein, meine,
    unser
facts 0.4: ist, sind, war, hat, haben, gibt es, wird
pending 1.0: noch offen, noch nicht, noch zu tun, offen, ausstehend, nächster schritt, nächste schritte,
    als nächstes, fehlt noch, nicht vergessen, zu erledigen, steht noch aus, müssen noch, muss noch, warten auf,
    es fehlt, später
pending 0.6: danach, morgen, nächste woche, demnächst, muss, müssen, planen, will ich, wollen wir
request 0.9: ^bitte, kannst du, könntest du, können sie, ich brauche, ich möchte, ich will, hilf mir, wie kann ich
request 0.8: ^schreibe, ^schreib, ^erstelle, ^baue, ^füge, ^ändere, ^prüfe, ^erkläre, ^mach, ^behebe, ^lösche,
    ^teste
doubt 1.0: sollen wir, sollten wir, könnten wir, wir könnten, vielleicht, was wäre, man könnte, eventuell,
    oder sollen
talk 1.0: ^ich werde jetzt, ^lass mich, ^ich schaue, ^schauen wir, ^hier ist, ^hier sind, ich sehe mir
done 1.0: erledigt, fertig, behoben, abgeschlossen, umgesetzt, gelöst, hinzugefügt, entfernt, gelöscht,
    geschrieben
denied 1.0: nicht, kein, keine, keinen, keiner, nie, niemals, ohne, nichts, weder
"""

FRENCH = """
decisions 1.0: nous allons utiliser, on va utiliser, on utilise, utilisons, décidé, décidons, décision, choisi,
    on garde, gardons, désormais, dorénavant, convenu, d'accord pour, on reste sur, on part sur, je préfère,
    nous préférons, il ne faut pas
decisions 0.7: au lieu de, plutôt que, préfère, il faut, on doit, nous devons, doit, jamais, toujours, évitons
order 0.9: ^utilise, ^utilisez, ^garde, ^gardez, ^ne, ^n'utilise, ^jamais, ^toujours, ^évite, ^évitez, ^pas de
facts 1.0: la cause, il s'avère, le problème est, le problème vient, le bug est, à cause de, en raison, j'habite,
    je travaille, je m'appelle, je vis, je suis né, je suis née, nous avons trouvé, j'ai trouvé, confirmé,
    s'appelle
facts 0.7: parce que, car, se trouve, version, port, nécessite, contient, échéance, date limite, mon, ma, mes,
    notre, nos
facts 0.4: est, sont, était, ont, il y a
pending 1.0: à faire, reste à, il reste, pas encore, prochaine étape, prochaines étapes, ensuite il faut,
    n'oublie pas, n'oubliez pas, en attente, en suspens, à terminer, manque encore, plus tard, il manque
pending 0.6: demain, la semaine prochaine, ensuite, il faudra, on devra, prévu, je vais, nous allons
request 0.9: peux tu, pouvez vous, pourrais tu, pourriez vous, j'ai besoin, je veux, je voudrais, aide moi,
    aidez moi
request 0.8: ^écris, ^crée, ^ajoute, ^corrige, ^change, ^vérifie, ^explique, ^supprime, ^fais, ^mets, ^teste,
    ^merci de
doubt 1.0: peut être, est ce que, devrions nous, faut il, on pourrait, nous pourrions, pourrait, et si, devrait on
talk 1.0: ^je vais maintenant, ^laisse moi, ^laissez moi, ^voici, ^voyons
done 1.0: terminé, terminée, corrigé, corrigée, résolu, résolue, ajouté, ajoutée, supprimé, fait, fini, finie,
    fermé
denied 1.0: ne, n'est, pas, jamais, sans, aucun, aucune, rien, ni, n'a, n'ont
"""

SPANISH = """
decisions 1.0: vamos a usar, usaremos, usamos, usemos, decidido, decidimos, decidí, decisión, elegimos, elegí,
    acordado, acordamos, de ahora en adelante, a partir de ahora, nos quedamos con, mantenemos, prefiero,
    preferimos, no se debe
decisions 0.7: en lugar de, en vez de, debe, deben, debemos, hay que, nunca, siempre, evitar
order 0.9: ^usa, ^usad, ^utiliza, ^mantén, ^no uses, ^no, ^nunca, ^siempre, ^evita, ^deja
facts 1.0: la causa, resulta que, el problema es, el problema era, el error es, debido a, me llamo, vivo en,
    trabajo en, trabajo como, soy de, nací, descubrimos, encontré, encontramos, confirmado, se llama
facts 0.7: porque, ya que, está en, están en, versión, puerto, requiere, contiene, plazo, fecha límite, mi, mis,
    nuestro
facts 0.4: es, son, era, está, tiene, tienen, hay
pending 1.0: por hacer, falta, faltan, queda por, quedan, pendiente, pendientes, todavía no, aún no,
    siguiente paso, próximo paso, próximos pasos, no olvides, no olvidar, en espera, más tarde, después hay que
pending 0.6: mañana, la próxima semana, luego, habrá que, tenemos que, tengo que, planeo, voy a
request 0.9: puedes, podrías, puede usted, necesito, quiero, quisiera, ayúdame, por favor, me gustaría
request 0.8: ^escribe, ^crea, ^añade, ^agrega, ^corrige, ^cambia, ^revisa, ^explica, ^elimina, ^borra, ^haz,
    ^prueba, ^pon
doubt 1.0: quizás, quizá, tal vez, deberíamos, podríamos, podría, y si, qué tal si, a lo mejor
talk 1.0: ^déjame, ^voy a revisar, ^vamos a ver, ^aquí está, ^aquí tienes, ^veamos
done 1.0: hecho, terminado, arreglado, corregido, resuelto, añadido, eliminado, completado, listo, cerrado,
    borrado
denied 1.0: no, nunca, sin, ningún, ninguna, nada, ni, tampoco
"""

# Chinese and Japanese do not put spaces between words: these are looked for as they stand.
UNSPACED = """
decisions 1.0: 决定, 決定, 就用, 改用, 采用, 採用, 选择了, 選擇了, 约定, 約定, 从现在起, 今后, 使うことに,
    にします, にしましょう, 方針
decisions 0.8: 不要, 必须, 必須, 务必, 禁止, 而不是, 总是, 始终, 永远不, しないで, 使わない, 常に, 代わりに, 优先,
    優先, ではなく
facts 1.0: 原因, 因为, 因為, 发现, 發現, 问题是, 問題は, 我叫, 我住在, 我在, 位于, 由于, ために, からです, 判明,
    と分かり, 住んで, 名前は, 確認
facts 0.6: 版本, 端口, 需要, 包含, バージョン, ポート, は必要, です, ました, 是, 有, 在, 我的, 私の, ある, いる
pending 1.0: 待办, 待辦, 还没, 還沒, 尚未, 未完成, 下一步, 剩下, 还需要, 還需要, 稍后, 以后再, まだ, 残り, 次は,
    次に, あとで, 後で, 未対応, やること, 忘れず
pending 0.6: 明天, 下周, 明日, 来週, 接下来, 接着, 今度, 予定
request 0.9: 请, 請, 帮我, 幫我, 能不能, 我想, 我要, 需要你, してください, して欲しい, してほしい, お願い,
    たいです, 教えて, ください
doubt 1.0: 是否, 要不要, 也许, 也許, 可能, 或许, 如果, 吗, 嗎, かもしれ, でしょうか, どうでしょう, ますか, ですか,
    もし, たぶん
talk 1.0: 让我, 讓我, 我来看, 我先, 以下是, 見てみ, 確認してみ, 以下の
done 1.0: 完成了, 已完成, 已经, 修复了, 解决了, 搞定, 完了, 終わり, 直しました, 修正しました, 追加しました,
    解決しました, 済み
denied 1.0: 不, 没, 沒, 无, 無, 别, 未, ない, ません, なし
"""

# A message of nothing but these words asks for nothing new.
ACKNOWLEDGEMENTS = """
ok okay k yes yep yeah y no nope n thanks thank you thx great good perfect continue go on ahead proceed sure
cool nice done right correct please do it next resume keep going lgtm ship sounds fine awesome excellent hi
hello hey and so now then wow oh ah hmm got again retry bye test ping ja nein danke weiter bitte gut genau oui
non merci continuez vas d'accord parfait sí si gracias sigue continúa vale perfecto 好 好的 继续 繼續 谢谢 謝謝
可以 对 是的 嗯 はい いいえ 続けて ありがとう ありがとうございます お願いします
"""
